#include "sim/memory/traffic.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace dculab::sim {

double run_rounding(Bytes run, Bytes line, Bytes pitch) {
  const auto bytes = static_cast<std::int64_t>(run.value()), line_bytes = static_cast<std::int64_t>(line.value());
  const std::int64_t step = std::gcd(bytes, static_cast<std::int64_t>(pitch.value()));
  return static_cast<double>(bytes + line_bytes - std::gcd(step, line_bytes)) / static_cast<double>(bytes);
}

double line_rounding(const lower::Access& access, Bytes line) {
  const Bytes run = std::min(access.contiguous_run, access.unique);
  if (run < Bytes(1) || line < Bytes(1) || !access.is_scattered) return 1;
  return run_rounding(run, line);
}

}  // namespace dculab::sim
