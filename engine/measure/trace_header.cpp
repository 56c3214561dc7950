#include "engine/measure/trace_header.hpp"

#include <time.h>

#include <chrono>
#include <utility>

namespace dculab::engine {
namespace {

[[nodiscard]] std::string now_iso8601() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

TraceHeader trace_header(const ModelExecutor& executor, std::string timing) {
  return {.machine = "host",
          .device = executor.device_name(),
          .build = executor.build_name(),
          .threads = executor.num_threads(),
          .timing = std::move(timing),
          .created = now_iso8601()};
}

}  // namespace dculab::engine
