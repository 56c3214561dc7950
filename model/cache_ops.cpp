// Ops that write the KV cache.
#include "model/attention_work.hpp"
#include "model/decoder_ops.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
// Rotation: 3 FLOP a value of Q and K; with ALiBi nothing is rotated, and Q not touched.
Op plan_rope_and_cache(const StepSizes& sizes, const Batch& batch) {
  const Gqa& attention = sizes.layer().gqa();
  const Heads& heads = attention.heads;
  const double own_kv = attention.shares_kv ? 0.0 : heads.kv_width();
  const auto tokens = static_cast<double>(sizes.tokens);
  const int kept_of_k = attention.k_eq_v ? heads.kv_width() : 0;  // V
  Op op = make_op(OpKind::rope_and_cache, {.name = "rope_and_cache", .input = Buffer::qkv, .output = Buffer::qkv},
                  sizes, sizes.tokens, attention.projected_width() + kept_of_k);
  op.rotates = attention.position.kind == PositionKind::rope;
  op.rotates_part = op.rotates && (attention.position.pairs == RopePairs::neighbours ||
                                   attention.rotary_dim() != attention.heads.head_dim);
  const double read = (op.rotates ? heads.query_width() : 0) + 2 * own_kv;
  op.add({OperandRole::activation, activations(sizes, tokens * read), activations(sizes, heads.head_dim)});
  if (op.rotates) {
    op.flops = FlopCount(3.0 * tokens * (heads.query_width() + own_kv));
    op.add({OperandRole::output, activations(sizes, tokens * heads.query_width()), activations(sizes, heads.head_dim)});
  }
  op.attention.kv_dtype = sizes.options.kv_cache_dtype;
  op.attention.block_size = sizes.options.block_size;
  op.attention.kv_blocks = touched_blocks(batch, sizes.options.block_size).all;
  if (!attention.shares_kv) kv_format_plan(sizes.options.kv_cache_dtype).add_cache_writes(op, sizes, batch);
  if (const auto add_kept = kv_policy_plan(sizes.options.kv_retention.policy).add_kept) add_kept(op, sizes, batch);
  return op;
}

}  // namespace dculab
