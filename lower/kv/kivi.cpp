// kivi4 and kivi2: groups of tokens that are complete are quantized, on a CPU value by value.
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

// Of rope_and_cache: values of K and V that are quantized.
struct KiviGroups {
  double values = 0;
  double from_residual = 0;  // of these; the others are new
  double head_dim = 1;
};

[[nodiscard]] KiviGroups kivi_groups(const Op& op) {
  const Dtype dtype = op.attention.kv_dtype;
  KiviGroups groups;
  for (const Operand& operand : op.operands()) {
    if (operand.role == OperandRole::kv_read) groups.from_residual = operand.unique / storage(Dtype::f16, 1);
    if (operand.role != OperandRole::kv_write) continue;
    groups.head_dim = std::round(operand.contiguous_run / storage(dtype, 1));
    groups.values =
        groups.head_dim * (operand.unique / kv_storage(dtype, groups.head_dim, static_cast<int>(groups.head_dim)));
  }
  return groups;
}

// The groups of tokens that a step completes are quantized, a task for each group and KV head.
void add_kivi_groups(Launch& launch, const Op& op) {
  const auto [grouped, from_residual, head] = kivi_groups(op);
  if (grouped == 0) return;
  launch.arithmetic.stored_values = grouped;
  launch.arithmetic.shaping_per_value =
      kCpuLanes * (kGroupedInstructions + kResidualInstructions * from_residual / grouped);
  const double tasks = grouped / (2 * kKiviGroup * head);  // K and V
  launch.grid.most_workgroups = std::max(launch.grid.workgroups, tasks);
}

[[nodiscard]] int phases_with_groups(const Batch& batch) {
  bool has[2]{};
  for (const SequenceSlice& slice : batch.sequences)
    if (slice.context_tokens() / kKiviGroup > slice.num_computed_tokens / kKiviGroup)
      has[static_cast<std::size_t>(slice.phase)] = true;
  return int{has[0]} + int{has[1]};
}

// On a GPU (kernels/gpu/kv/kivi.hip.hpp): attention is followed by a kernel that puts the new tokens into the
// residuals, and each phase with complete groups has one that quantizes them.
void add_kivi_kernels(const Op& op, const StepPlan& step, Launch& launch) {
  if (op.kind == OpKind::rope_and_cache) {
    launch.kernels = (op.rotates ? 1 : 0) + phases_with_groups(step.batch);
    if (launch.kernels == 0)  // nothing is rotated, no group is complete
      for (Access& access : launch.accesses()) access.unique = Bytes();
    return;
  }
  if (op.kind != OpKind::attention_prefill && op.kind != OpKind::attention_decode) return;
  Bytes kept;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_write) kept = operand.unique;
  for (Access& access : launch.accesses())  // K and V of new tokens are read once more
    if (access.role == OperandRole::activation) {
      access.unique += kept / 16 * bits(op.activation_dtype);
      break;
    }
  ++launch.kernels;
}

// What of complete groups is new, and what the residual has; in a unit after the other.
void add_kivi_streams(Streams& streams, const Op& op, Dtype activations) {
  const KiviGroups groups = kivi_groups(op);
  if (groups.values == 0) return;
  streams.add({.role = OperandRole::activation, .unique = storage(activations, groups.values - groups.from_residual)});
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_read || operand.role == OperandRole::kv_write)
      streams.add({.role = operand.role, .unique = operand.unique});
}

}  // namespace

const KvFormatLowering kKiviLowering{
    .add_cache_work = add_kivi_groups, .add_gpu_kernels = add_kivi_kernels, .add_gpu_writes = add_kivi_streams};

}  // namespace dculab::lower
