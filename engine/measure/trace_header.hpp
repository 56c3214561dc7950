// Who measures a trace: this build, this device, now.
#pragma once

#include <string>

#include "core/trace.hpp"
#include "engine/executors/model_executor.hpp"

namespace dculab::engine {

// `threads`: of a CPU executor, else 0.
[[nodiscard]] TraceHeader trace_header(const ModelExecutor& executor, int threads, std::string timing);

}  // namespace dculab::engine
