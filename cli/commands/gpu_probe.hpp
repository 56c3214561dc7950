// `dculab probe --device hip:N`: measures a GPU, and writes a machine from it and a shipped one.
#pragma once

#include <string>

#include "engine/executors/open_executor.hpp"
#include "present/output/show.hpp"

namespace dculab::cli {

struct GpuProbeChoices {
  engine::DeviceChoice device;
  std::string like;          // a shipped machine, or a file; may be empty
  std::string machine_file;  // may be empty
  present::OutputOptions output;
};

// Throws InputError for a machine file of an emulated GPU, or without a machine to start from.
void run_gpu_probe(const GpuProbeChoices& choices);

}  // namespace dculab::cli
