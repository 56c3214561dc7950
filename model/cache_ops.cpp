// Ops that write the KV cache.
#include "core/kivi.hpp"
#include "model/decoder_ops.hpp"

namespace dculab {
namespace {

// K and V of the new tokens, to where attention will find them, one head of one token at a time.
void add_cache_writes(Op& op, const StepSizes& sizes) {
  const Heads& heads = sizes.heads();
  const Dtype dtype = sizes.options.kv_cache_dtype;
  const auto written = static_cast<double>(sizes.tokens - sizes.unwritten);
  if (written > 0)
    op.add({OperandRole::kv_write, kv_storage(dtype, 2.0 * written * heads.kv_width(), heads.head_dim),
            storage(dtype, heads.head_dim)});
}

// KIVI: they are rounded to F16 where they are, and whole groups are quantized into the blocks.
void add_kivi_groups(Op& op, const StepSizes& sizes, const Batch& batch) {
  const Heads& heads = sizes.heads();
  const Dtype dtype = sizes.options.kv_cache_dtype;
  const double row = 2.0 * heads.kv_width();
  double grouped = 0, from_residual = 0;
  for (const SequenceSlice& sequence : batch.sequences) {
    const KiviTraffic tokens =
        kivi_traffic(sequence.num_computed_tokens, sequence.context_tokens(), 0, sizes.options.kv_residual_tokens);
    grouped += tokens.grouped;
    from_residual += tokens.residual_grouped;
  }
  op.add({OperandRole::output, activations(sizes, row * static_cast<double>(sizes.tokens)),
          activations(sizes, heads.head_dim)});
  if (grouped > 0)
    op.add({OperandRole::kv_write, kv_storage(dtype, row * grouped, heads.head_dim), storage(dtype, heads.head_dim)});
  if (from_residual > 0)
    op.add({OperandRole::kv_read, storage(Dtype::f16, row * from_residual), storage(Dtype::f16, heads.head_dim)});
}

}  // namespace

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
  op.kv_retention = sizes.options.kv_retention;
  op.attention.kv_dtype = sizes.options.kv_cache_dtype;
  if (attention.shares_kv) return op;
  if (is_kivi(sizes.options.kv_cache_dtype))
    add_kivi_groups(op, sizes, batch);
  else
    add_cache_writes(op, sizes);
  return op;
}

// The first keys and values of `sequences` sequences, which are kept in F32 beside the cache: rotated and written anew.
Op plan_shift_sink_keys(const StepSizes& sizes, std::int64_t sequences) {
  const Heads& heads = sizes.heads();
  const std::int64_t rows = sequences * sizes.options.kv_retention.sink_tokens;
  Op op = make_op(OpKind::shift_sink_keys, {.name = "shift_sink_keys"}, sizes, rows, 2 * heads.kv_width());
  op.kv_retention = sizes.options.kv_retention;
  const double values = static_cast<double>(rows) * heads.kv_width();
  op.flops = FlopCount(3.0 * values);
  op.add({OperandRole::activation, storage(Dtype::f32, 2 * values), storage(Dtype::f32, heads.head_dim)});
  op.add({OperandRole::kv_write, kv_storage(sizes.options.kv_cache_dtype, 2 * values, heads.head_dim),
          storage(sizes.options.kv_cache_dtype, heads.head_dim)});
  return op;
}

}  // namespace dculab
