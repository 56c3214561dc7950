// kivi4 and kivi2 on a CPU: groups of tokens that are complete are quantized value by value.
#include "core/kv/kivi.hpp"

#include <algorithm>
#include <cmath>

#include "lower/attention.hpp"
#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower {
namespace {

// Of the CPU's KIVI kernel (kernels/cpu/kv/kivi.cpp) for each value of a group, one at a time so that all lanes but one
// are idle: two comparisons, a subtraction, a division (as long as four), two additions that round, a comparison, a
// conversion; and to widen one of the residual.
constexpr double kGroupedInstructions = 12;
constexpr double kResidualInstructions = 3;

// The groups of tokens that a step completes are quantized, a task for each group and KV head.
void add_kivi_groups(Launch& launch, const Op& op) {
  const Dtype dtype = op.attention.kv_dtype;
  double grouped = 0, from_residual = 0, head = 1;
  for (const Operand& operand : op.operands()) {
    if (operand.role == OperandRole::kv_read) from_residual = operand.unique / storage(Dtype::f16, 1);
    if (operand.role != OperandRole::kv_write) continue;
    head = std::round(operand.contiguous_run / storage(dtype, 1));
    grouped = head * (operand.unique / kv_storage(dtype, head, static_cast<int>(head)));
  }
  if (grouped == 0) return;
  launch.arithmetic.stored_values = grouped;
  launch.arithmetic.shaping_per_value =
      kCpuLanes * (kGroupedInstructions + kResidualInstructions * from_residual / grouped);
  const double tasks = grouped / (2 * kKiviGroup * head);  // K and V
  launch.grid.most_workgroups = std::max(launch.grid.workgroups, tasks);
}

}  // namespace

const KvFormatLowering kKiviLowering{.add_cache_work = add_kivi_groups};

}  // namespace dculab::lower
