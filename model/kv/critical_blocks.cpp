// Quest: bounds of the keys of each block, and by them the blocks that a decode loads. What kernels do:
// kernels/kv/critical_blocks.hpp.
#include <algorithm>

#include "model/attention_work.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

// A minimum and a maximum of each channel, in BF16.
[[nodiscard]] Bytes bounds_of_head(const Heads& heads) { return storage(Dtype::bf16, 2.0 * heads.head_dim); }

[[nodiscard]] Bytes bounds_of_block(const Gqa& attention) {
  return bounds_of_head(attention.heads) * attention.heads.num_key_value_heads;
}

[[nodiscard]] AttentionWork shape_of(const Heads& heads, const EngineOptions& options) {
  return {.num_query_heads = heads.num_attention_heads,
          .num_kv_heads = heads.num_key_value_heads,
          .head_dim = heads.head_dim,
          .value_dim = heads.head_dim,
          .block_size = options.block_size,
          .kv_dtype = options.kv_cache_dtype};
}

// Keys are read where rope_and_cache has just written them. Two comparisons a value.
[[nodiscard]] Op plan_update(const StepSizes& sizes, const Batch& batch) {
  const Heads& heads = sizes.heads();
  const std::int64_t written = sizes.tokens - sizes.unwritten;
  Op op = make_op(OpKind::update_block_bounds, {.name = "update_block_bounds"}, sizes, written, heads.kv_width());
  const double values = static_cast<double>(written) * heads.kv_width();
  const Dtype dtype = sizes.options.kv_cache_dtype;
  const TouchedBlocks blocks = touched_blocks(batch, sizes.options.block_size);
  const Bytes of_block = bounds_of_block(sizes.layer().gqa());
  op.attention = shape_of(heads, sizes.options);
  op.attention.kv_blocks = blocks.all;
  op.flops = FlopCount(2 * values);
  op.add({OperandRole::activation, kv_storage(dtype, values, heads.head_dim), storage(dtype, heads.head_dim)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * blocks.all), Bytes(kBlockIdBytes)});
  op.add({OperandRole::kv_read, of_block * blocks.widened, bounds_of_head(heads)});
  op.add({OperandRole::kv_write, of_block * blocks.all, bounds_of_head(heads)});
  return op;
}

// A multiply-add a channel: the sign of a query's value says with which bound. The bounds of products are written and
// read once more; what is written for good are the lists of chosen blocks, and queries side by side.
[[nodiscard]] Op plan_block_choice(const StepSizes& sizes, const Batch& batch) {
  const Heads& heads = sizes.heads();
  const double kv_heads = heads.num_key_value_heads;
  double blocks = 0, chosen = 0;
  int decodes = 0;
  for (const SequenceSlice& sequence : batch.sequences) {
    if (sequence.phase != Phase::decode) continue;
    const int of_sequence = blocks_of(0, sequence.context_tokens(), sizes.options.block_size);
    blocks += of_sequence;
    chosen += kv_blocks_loaded(sizes.options.kv_retention, of_sequence);
    ++decodes;
  }
  Op op = make_op(OpKind::choose_critical_blocks, {.name = "choose_critical_blocks", .input = Buffer::qkv}, sizes,
                  decodes, heads.query_width());
  const double query_values = static_cast<double>(decodes) * heads.query_width();
  op.attention = shape_of(heads, sizes.options);
  op.attention.num_sequences = decodes;
  op.attention.query_tokens = decodes;
  op.attention.kv_blocks = blocks;
  op.flops = FlopCount(2 * blocks * heads.query_width());
  op.add({OperandRole::activation, activations(sizes, query_values), activations(sizes, heads.head_dim)});
  op.add({OperandRole::kv_read, bounds_of_block(sizes.layer().gqa()) * blocks, bounds_of_head(heads)});
  op.add({OperandRole::block_table, Bytes(kBlockIdBytes * blocks), Bytes(kBlockIdBytes)});
  op.add({OperandRole::output,
          activations(sizes, query_values) + 2.0 * storage(Dtype::f32, blocks * kv_heads) +
              Bytes(kBlockIdBytes * chosen * kv_heads),
          storage(Dtype::f32, blocks / std::max(1, decodes))});
  return op;
}

void plan_critical_blocks(StepPlan& plan, const StepSizes& sizes) {
  if (sizes.tokens > sizes.unwritten) plan.ops.push_back(plan_update(sizes, plan.batch));
  const Op choice = plan_block_choice(sizes, plan.batch);
  if (choice.m > 0) plan.ops.push_back(choice);
}

}  // namespace

const KvPolicyPlan kCriticalBlocksPlan{.after_cache = plan_critical_blocks, .bytes_beside_block = bounds_of_block};

}  // namespace dculab
