// Who measures a trace: this build, this device, now.
#pragma once

#include <string>

#include "engine/executors/model_executor.hpp"
#include "model/trace.hpp"

namespace dculab::engine {

[[nodiscard]] TraceHeader trace_header(const ModelExecutor& executor, std::string timing);

}  // namespace dculab::engine
