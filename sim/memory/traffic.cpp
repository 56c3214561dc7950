#include "sim/memory/traffic.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace dculab::sim {
namespace {

[[nodiscard]] bool is_scattered(const Op& op, const Operand& operand) {
  const bool kv = operand.role == OperandRole::kv_read || operand.role == OperandRole::kv_write;
  return kv || (op.kind == OpKind::embedding && operand.role == OperandRole::weight);
}

}  // namespace

double line_rounding(const Op& op, const Operand& operand, Bytes line) {
  const auto run = static_cast<std::int64_t>(std::min(operand.contiguous_run, operand.unique).value());
  const auto line_bytes = static_cast<std::int64_t>(line.value());
  if (run <= 0 || line_bytes <= 0 || !is_scattered(op, operand)) return 1;
  return static_cast<double>(run + line_bytes - std::gcd(run, line_bytes)) / static_cast<double>(run);
}

}  // namespace dculab::sim
