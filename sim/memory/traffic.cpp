#include "sim/memory/traffic.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/compute_time.hpp"

namespace dculab::sim {
namespace {

// Whether the runs lie apart: KV blocks and embedding rows. The rows of other tensors follow one another.
[[nodiscard]] bool is_scattered(const Op& op, const Operand& operand) {
  const bool kv = operand.role == OperandRole::kv_read || operand.role == OperandRole::kv_write;
  return kv || (op.kind == OpKind::embedding && operand.role == OperandRole::weight);
}

}  // namespace

Bytes moved_once(const Machine& machine, const Op& op, const Operand& operand) {
  Bytes line;
  for (const MemoryLevel& level : machine.memory) line = std::max(line, level.line);
  Bytes moved = operand.unique;
  const Bytes run = std::min(operand.contiguous_run, operand.unique);
  if (run > Bytes{} && is_scattered(op, operand)) moved *= std::ceil(run / line) * line / run;
  if (operand.role == OperandRole::kv_read) moved *= padding(machine, op);
  return moved;
}

}  // namespace dculab::sim
