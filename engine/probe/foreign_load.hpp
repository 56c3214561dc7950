// How much of the machine did others use while we measured?
#pragma once

#include <optional>
#include <string_view>

#include "core/units.hpp"

namespace dculab::engine {

// CPU time since boot, of all CPUs together.
struct CpuTimes {
  Seconds busy;   // anybody's, with the time the hypervisor took away
  Seconds total;  // busy and idle
};

// Reads the text of /proc/stat, whose unit is 1 / ticks_per_second.
[[nodiscard]] std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat, double ticks_per_second);

// Counts from its construction on.
class ForeignLoad {
 public:
  ForeignLoad();

  // Share of all CPUs, 0 to 1, that other processes used; 0 where /proc/stat is absent.
  [[nodiscard]] double share() const;

 private:
  std::optional<CpuTimes> start_;
  Seconds own_start_;
};

}  // namespace dculab::engine
