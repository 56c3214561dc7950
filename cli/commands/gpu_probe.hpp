// `dculab probe --device hip:N`: measures a GPU, and writes a machine from it and a shipped one.
#pragma once

#include <string>

#include "cli/output/output.hpp"
#include "engine/executors/open_executor.hpp"

namespace dculab::cli {

struct GpuProbeChoices {
  engine::DeviceChoice device;
  std::string like;          // a shipped machine, or a file; may be empty
  std::string machine_file;  // may be empty
  OutputOptions output;
};

// Throws InputError for a machine file of an emulated GPU, or without a machine to start from.
void run_gpu_probe(const GpuProbeChoices& choices);

}  // namespace dculab::cli
