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

double run_rounding(Bytes run, Bytes line, Bytes pitch) {
  const auto bytes = static_cast<std::int64_t>(run.value()), line_bytes = static_cast<std::int64_t>(line.value());
  const std::int64_t step = std::gcd(bytes, static_cast<std::int64_t>(pitch.value()));
  return static_cast<double>(bytes + line_bytes - std::gcd(step, line_bytes)) / static_cast<double>(bytes);
}

double line_rounding(const Op& op, const Operand& operand, Bytes line) {
  const Bytes run = std::min(operand.contiguous_run, operand.unique);
  if (run < Bytes(1) || line < Bytes(1) || !is_scattered(op, operand)) return 1;
  return run_rounding(run, line);
}

}  // namespace dculab::sim
