// StreamingLLM: the first keys move along with the window of the newest.
#include <algorithm>

#include "model/attention_work.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

// The first keys and values of `sequences` sequences, which are kept in F32 beside the cache: rotated and written anew.
[[nodiscard]] Op plan_shift_sink_keys(const StepSizes& sizes, std::int64_t sequences) {
  const Heads& heads = sizes.heads();
  const int sinks = sizes.options.kv_retention.sink_tokens;
  const std::int64_t rows = sequences * sinks;
  Op op = make_op(OpKind::shift_sink_keys, {.name = "shift_sink_keys"}, sizes, rows, 2 * heads.kv_width());
  op.attention.kv_dtype = sizes.options.kv_cache_dtype;
  op.attention.block_size = sizes.options.block_size;
  op.attention.kv_blocks = static_cast<double>(sequences * blocks_of(0, sinks, sizes.options.block_size));
  const double values = static_cast<double>(rows) * heads.kv_width();
  op.flops = FlopCount(3.0 * values);
  op.add({OperandRole::activation, storage(Dtype::f32, 2 * values), storage(Dtype::f32, heads.head_dim)});
  op.add({OperandRole::kv_write, kv_storage(sizes.options.kv_cache_dtype, 2 * values, heads.head_dim),
          storage(sizes.options.kv_cache_dtype, heads.head_dim)});
  return op;
}

void plan_shifts(StepPlan& plan, const StepSizes& sizes) {
  std::int64_t shifted = 0;
  for (const SequenceSlice& sequence : plan.batch.sequences) shifted += sequence.num_newly_evicted_tokens > 0 ? 1 : 0;
  if (shifted > 0) plan.ops.push_back(plan_shift_sink_keys(sizes, shifted));
}

// Sinks among the new tokens, K before any rotation, and V, in F32.
void add_kept_sinks(Op& op, const StepSizes& sizes, const Batch& batch) {
  const double width = 2.0 * sizes.heads().kv_width();
  double sinks = 0;
  for (const SequenceSlice& sequence : batch.sequences) {
    const int left = sizes.options.kv_retention.sink_tokens - sequence.first_position();
    sinks += std::clamp(left, 0, sequence.num_new_tokens);
  }
  if (sinks > 0) op.add({OperandRole::output, storage(Dtype::f32, sinks * width), storage(Dtype::f32, width)});
}

}  // namespace

const KvPolicyPlan kSinksPlan{.before_cache = plan_shifts, .add_kept = add_kept_sinks};

}  // namespace dculab
