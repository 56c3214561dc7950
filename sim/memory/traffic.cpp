#include "sim/memory/traffic.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace dculab::sim {

double line_rounding(const lower::Access& access, Bytes line) {
  const auto run = static_cast<std::int64_t>(std::min(access.contiguous_run, access.unique).value());
  const auto line_bytes = static_cast<std::int64_t>(line.value());
  if (run <= 0 || line_bytes <= 0 || !access.is_scattered) return 1;
  return static_cast<double>(run + line_bytes - std::gcd(run, line_bytes)) / static_cast<double>(run);
}

}  // namespace dculab::sim
