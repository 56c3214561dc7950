// Measures this host: every memory level and arithmetic peak by thread count, in about twenty seconds or a minute.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/probe/host_measurements.hpp"

namespace dculab::engine {

enum class ProbeMode : std::uint8_t { quick, full };  // about 20 s; about a minute

struct ProbeOptions {
  ProbeMode mode = ProbeMode::full;
  int threads = 0;  // the most that run at once; 0 = all CPUs this process may use
  std::function<void(std::string_view label, double fraction)> progress;  // may be empty
};

[[nodiscard]] HostMeasurements probe_host(const ProbeOptions& options);

}  // namespace dculab::engine
