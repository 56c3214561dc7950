// Traces that a command names: their files, or archives that scripts/gpu-validate packed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

enum class TraceUse : std::uint8_t {
  fit,      // of an archive without the traces of other formats and families, which the fit is to predict
  compare,  // all
};

struct MeasuredTrace {
  std::string file;
  Trace trace;
};

// In order. Throws InputError for a file that cannot be read, and for an archive that has none of this use.
[[nodiscard]] std::vector<MeasuredTrace> read_traces(const std::vector<std::string>& files, TraceUse use);

// A machine by name or file; without one, the machine that the only archive among the files brings along. Throws
// InputError.
[[nodiscard]] sim::Machine machine_of_traces(const std::string& name, const std::vector<std::string>& files);

}  // namespace dculab::study
