// Ops of multi-head latent attention as calls of the GPU kernels.
#include <algorithm>

#include "engine/executors/expanded_kv.hpp"
#include "engine/executors/gpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"
#include "engine/step/gpu_attention.hpp"

namespace dculab::engine {

using kernels::gpu::Input;
using kernels::gpu::Output;

// Of a token: the queries or their latent, the KV latent, the key.
GpuExecutor::Rows GpuExecutor::latent_rows(const Op& op) const {
  const int stride = width(shape_, layer_of(op, shape_), Buffer::qkv);
  return {at(Buffer::qkv, stride - latents_of(op, shape_).latent_width()), stride};
}

GpuExecutor::Rows GpuExecutor::query_rows(const Op& op) const {
  const Mla& attention = latents_of(op, shape_);
  if (attention.q_lora_rank > 0) return {at(Buffer::queries, 0), attention.query_width()};
  return {at(Buffer::qkv, 0), width(shape_, layer_of(op, shape_), Buffer::qkv)};
}

void GpuExecutor::execute_latent_norm(const Op& op, int layer) {
  const Mla& attention = latents_of(op, shape_);
  const std::array<Input, 2>& weights = weights_.in(op.weight, layer).parts;
  require(op.m == inputs_.num_tokens() && op.n == attention.q_lora_rank + attention.kv_lora_rank, op,
          "has another shape");
  const Rows latents = latent_rows(op);
  const auto norm = [&](std::size_t part, const Output& x, int columns) {
    require(weights[part].data != nullptr, op, "has no weights");
    device_->head_norm({.x = x,
                        .stride = latents.stride,
                        .weight = weights[part],
                        .num_tokens = inputs_.num_tokens(),
                        .num_heads = 1,
                        .head_dim = columns,
                        .epsilon = kLatentNormEpsilon});
  };
  if (attention.q_lora_rank > 0) norm(kQ, at(Buffer::qkv, 0), attention.q_lora_rank);
  norm(kK, latents.first, attention.kv_lora_rank);
}

// The rotated part of each query head, then the token's key; the latent and the key to the cache.
void GpuExecutor::execute_latent_cache(const Op& op, int layer) {
  const Mla& attention = latents_of(op, shape_);
  require(op.m == inputs_.num_tokens() && op.n == attention.query_width() + attention.latent_width(), op,
          "has another shape");
  latent_phase_ = inputs_.attention(Phase::prefill).num_seqs > 0 ? Phase::prefill : Phase::decode;
  const int rope = attention.qk_rope_head_dim;
  const Rows queries = query_rows(op), latents = latent_rows(op);
  const auto rotate_parts = [&](const Rows& rows, int first, int num_heads, int head_dim) {
    device_->part_rotary_embedding({.qkv = {offset_by(rows.first, first)},
                                    .positions = device_inputs_.positions.as<std::int32_t>(),
                                    .cos_sin = positions_[op.layer_kind].cos_sin.as<float>(),
                                    .num_tokens = inputs_.num_tokens(),
                                    .num_heads = num_heads,
                                    .head_dim = head_dim,
                                    .rotary_dim = rope,
                                    .neighbours = attention.position.pairs == RopePairs::neighbours,
                                    .stride = rows.stride});
  };
  rotate_parts(queries, attention.qk_nope_head_dim, attention.num_attention_heads, attention.qk_head_dim());
  rotate_parts(latents, attention.kv_lora_rank, 1, rope);
  const Input rows{latents.first.data, latents.first.dtype};
  device_->reshape_and_cache({.k = rows,
                              .v = rows,
                              .kv_stride = latents.stride,
                              .slot_mapping = device_inputs_.slot_mapping.as<std::int64_t>(),
                              .cache = kv_.layer(layer),
                              .num_tokens = inputs_.num_tokens()});
}

// The product runs with the attention that reads what it gives, some heads of a sequence after the other.
void GpuExecutor::execute_expansion(const Op& op, int layer) {
  const Mla& attention = latents_of(op, shape_);
  std::int64_t context = 0;
  for (const std::int32_t tokens : inputs_.attention(latent_phase_).context_lens) context += tokens;
  const GpuMatrix& weights = weights_.in(op.weight, layer).matrix;
  require(op.m == context && op.n == attention.expanded_width() && weights.rows == op.n && weights.columns == op.k, op,
          "has another shape");
  require(op.weight_format == weights.format, op, "is planned in another format than its weights");
  expansion_ = &op;
}

void GpuExecutor::execute_absorption(const Op& op, int layer) {
  const Mla& attention = latents_of(op, shape_);
  const GpuMatrix& weights = weights_.in(op.weight, layer).matrix;
  const AttentionInputs& inputs = inputs_.attention(latent_phase_);
  const int tokens = inputs.query_start_loc.back(), heads = attention.num_attention_heads;
  const bool of_k = op.output == Buffer::latent_queries;
  require(op.m == std::int64_t{tokens} * heads && op.n == (of_k ? attention.kv_lora_rank : attention.v_head_dim), op,
          "has another shape");
  require(op.weight_format == weights.format, op, "is planned in another format than its weights");
  require(tokens <= latent_tokens(options_.limits), op, "has more tokens than the executor was made for");
  kernels::gpu::Absorb args{.sizes = latent_sizes(attention),
                            .kv_b_proj = weights.values,
                            .scales = weights.scales,
                            .x = {},
                            .y = {},
                            .num_tokens = tokens};
  const auto bind = [&](const Output& x, std::int64_t x_stride, const Output& y) {
    args.x = {x.data, x.dtype}, args.x_stride = x_stride, args.y = y;
  };
  if (of_k) {
    const Rows queries = query_rows(op);
    bind(offset_by(queries.first, inputs.first_token * queries.stride), queries.stride, at(Buffer::latent_queries, 0));
    return device_->absorb_k(args);
  }
  bind(at(Buffer::latent_outputs, 0), std::int64_t{heads} * attention.kv_lora_rank,
       at(Buffer::attention, std::int64_t{inputs.first_token} * attention.value_width()));
  device_->absorb_v(args);
  latent_phase_ = Phase::decode;
}

void GpuExecutor::execute_latent_attention(const Op& op, int layer, Phase phase) {
  const Mla& attention = latents_of(op, shape_);
  const AttentionInputs& inputs = inputs_.attention(phase);
  require(op.attention.num_sequences == inputs.num_seqs && phase == latent_phase_ &&
              op.attention.num_query_heads == attention.num_attention_heads,
          op, "has another shape");
  require(plan_->attention_split.partition_tokens == options_.partition_tokens, op, "is split otherwise");
  require(op.attention.block_size == kv_.options().block_size, op, "is planned for another KV cache");
  if (!op.attention.is_latent) return attend_expanded(op, layer, phase);
  require(op.attention.kv_dtype == kv_.options().dtype, op, "is planned for another KV cache");
  const GpuStepInputs::Attention& on_device = phase == Phase::prefill ? device_inputs_.prefill : device_inputs_.decode;
  const std::int64_t heads = attention.num_attention_heads;
  const auto attend = [&](int first, int count) {
    const std::int64_t first_row = inputs.query_start_loc[static_cast<std::size_t>(first)] * heads;
    const Output q = at(Buffer::latent_queries, first_row * attention.latent_width());
    device_->latent_attention(
        {.sizes = latent_sizes(attention),
         .q = {q.data, q.dtype},
         .cache = kv_.layer(layer),
         .block_tables = on_device.block_tables.as<std::int32_t>() + std::ptrdiff_t{first} * inputs.max_blocks_per_seq,
         .max_blocks_per_seq = inputs.max_blocks_per_seq,
         .queries = decode_queries(inputs, on_device, first, count),
         .context_lens = on_device.context_lens.as<std::int32_t>() + first,
         .max_context_len = longest_context(inputs),
         .out = at(Buffer::latent_outputs, first_row * attention.kv_lora_rank),
         .num_seqs = count,
         .scale = static_cast<float>(attention.score_scale()),
         .partition_tokens = phase == Phase::decode ? options_.partition_tokens : 0,
         .workspace = workspace_.as<float>()});
  };
  if (phase == Phase::prefill) return attend(0, inputs.num_seqs);  // in a single pass
  for_decode_runs(inputs, attend);
}

// Some heads of a sequence at a time: their latents are expanded, and attended to.
void GpuExecutor::attend_expanded(const Op& op, int layer, Phase phase) {
  const Mla& attention = latents_of(op, shape_);
  const AttentionInputs& inputs = inputs_.attention(phase);
  require(expansion_ != nullptr, op, "has nothing that was expanded");
  require(inputs.tree_sizes.empty(), op, "has trees, for which GPU kernels absorb latents");
  const auto index_of = [&](const Op& each) { return static_cast<std::size_t>(&each - plan_->ops.data()); };
  for (int seq = 0; seq < inputs.num_seqs; ++seq) {
    const int context = inputs.context_lens[static_cast<std::size_t>(seq)];
    const int most = expanded_.heads_at_once(attention, context);
    for (int head = 0; head < attention.num_attention_heads; head += most) {
      const GpuExpandedPart part{seq, head, std::min(most, attention.num_attention_heads - head)};
      begin_op(index_of(*expansion_));
      expand(part, layer, phase);
      begin_op(index_of(op));
      attend_to_expanded(op, part, phase);
    }
  }
  expansion_ = nullptr;
  latent_phase_ = Phase::decode;
}

void GpuExecutor::expand(const GpuExpandedPart& part, int layer, Phase phase) {
  const Mla& attention = latents_of(*expansion_, shape_);
  const AttentionInputs& inputs = inputs_.attention(phase);
  const GpuStepInputs::Attention& on_device = phase == Phase::prefill ? device_inputs_.prefill : device_inputs_.decode;
  const auto* const tables = on_device.block_tables.as<std::int32_t>();
  const GpuMatrix& weights = weights_.in(expansion_->weight, layer).matrix;
  expanded_.expand(attention, part, kv_.layer(layer), tables + std::ptrdiff_t{part.seq} * inputs.max_blocks_per_seq,
                   inputs.context_lens[static_cast<std::size_t>(part.seq)],
                   {.x = {}, .w = weights.values, .y = {}, .k = weights.columns, .scales = weights.scales});
}

void GpuExecutor::attend_to_expanded(const Op& op, const GpuExpandedPart& part, Phase phase) {
  const Mla& attention = latents_of(op, shape_);
  const AttentionInputs& inputs = inputs_.attention(phase);
  const GpuStepInputs::Attention& on_device = phase == Phase::prefill ? device_inputs_.prefill : device_inputs_.decode;
  const auto seq = static_cast<std::size_t>(part.seq);
  const Rows queries = query_rows(op);
  const Output q = offset_by(
      queries.first, inputs.first_token * queries.stride + std::int64_t{part.first_head} * attention.qk_head_dim());
  device_->prefill_attention({.q = {q.data, q.dtype},
                              .q_stride = queries.stride,
                              .cache = expanded_.cache(),
                              .block_tables = expanded_.block_table(),
                              .query_start_loc = on_device.query_start_loc.as<std::int32_t>() + seq,
                              .context_lens = on_device.context_lens.as<std::int32_t>() + seq,
                              .max_query_len = inputs.query_start_loc[seq + 1] - inputs.query_start_loc[seq],
                              .out = at(Buffer::attention, std::int64_t{inputs.first_token} * attention.value_width() +
                                                               std::int64_t{part.first_head} * attention.v_head_dim),
                              .num_seqs = 1,
                              .num_heads = part.num_heads,
                              .scale = static_cast<float>(attention.score_scale()),
                              .query_dim = attention.qk_head_dim(),
                              .out_dim = attention.v_head_dim,
                              .out_stride = attention.value_width()});
}

}  // namespace dculab::engine
