// Ops of multi-head latent attention as calls of the CPU kernels.
#include <cstring>

#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/latent_kernels.hpp"

namespace dculab::engine {

// Of a token: the queries or their latent, the KV latent, the key.
CpuExecutor::Rows CpuExecutor::latent_rows(const Op& op) {
  const int stride = width(weights_.shape, layer_of(op, weights_.shape), Buffer::qkv);
  return {values(Buffer::qkv) + stride - latents_of(op, weights_.shape).latent_width(), stride};
}

CpuExecutor::Rows CpuExecutor::query_rows(const Op& op) {
  const Mla& attention = latents_of(op, weights_.shape);
  if (attention.q_lora_rank > 0) return {values(Buffer::queries), attention.query_width()};
  return {values(Buffer::qkv), width(weights_.shape, layer_of(op, weights_.shape), Buffer::qkv)};
}

void CpuExecutor::execute_latent_norm(const Op& op, int layer) {
  const Mla& attention = latents_of(op, weights_.shape);
  const SlotWeights& bound = weights_.in(op.weight, layer);
  require(op.m == inputs_.num_tokens() && op.n == attention.q_lora_rank + attention.kv_lora_rank, op,
          "has another shape");
  const Rows latents = latent_rows(op);
  const auto norm = [&](std::size_t part, float* x, int columns) {
    require(bound.weights[part].rows == columns, op, "has another shape than its weights");
    kernels::cpu::head_norm(threads_, {.x = x,
                                       .stride = latents.stride,
                                       .weight = bound.weights[part],
                                       .num_tokens = inputs_.num_tokens(),
                                       .num_heads = 1,
                                       .head_dim = columns,
                                       .epsilon = kLatentNormEpsilon});
  };
  if (attention.q_lora_rank > 0) norm(kQ, values(Buffer::qkv), attention.q_lora_rank);
  norm(kK, latents.first, attention.kv_lora_rank);
}

// The queries' latents, which lie apart in their rows, side by side.
const float* CpuExecutor::gathered_query_latents(const Op& op) {
  const auto rank = static_cast<std::size_t>(latents_of(op, weights_.shape).q_lora_rank);
  const auto stride = static_cast<std::size_t>(latent_rows(op).stride);
  float* const gathered = gathered_rows_.floats(static_cast<std::size_t>(inputs_.num_tokens()) * rank);
  const float* const from = values(Buffer::qkv);
  kernels::cpu::for_each_token(threads_, inputs_.num_tokens(), static_cast<std::int64_t>(rank), [&](int token) {
    const auto row = static_cast<std::size_t>(token);
    std::memcpy(gathered + row * rank, from + row * stride, rank * sizeof(float));
  });
  return gathered;
}

void CpuExecutor::execute_latent_cache(const Op& op, int layer) {
  const Mla& attention = latents_of(op, weights_.shape);
  require(op.m == inputs_.num_tokens() && op.n == attention.query_width() + attention.latent_width(), op,
          "has another shape");
  latent_phase_ = inputs_.attention(Phase::prefill).num_seqs > 0 ? Phase::prefill : Phase::decode;
  const Rows queries = query_rows(op), latents = latent_rows(op);
  kernels::cpu::latent_rope_and_cache(threads_, {.sizes = latent_sizes(attention),
                                                 .q = queries.first,
                                                 .q_stride = queries.stride,
                                                 .latents = latents.first,
                                                 .latent_stride = latents.stride,
                                                 .positions = inputs_.positions().data(),
                                                 .slot_mapping = inputs_.slot_mapping().data(),
                                                 .cos_sin = positions_[op.layer_kind].cos_sin,
                                                 .cache = kv_.layer(layer),
                                                 .num_tokens = inputs_.num_tokens(),
                                                 .neighbours = attention.position.pairs == RopePairs::neighbours});
}

// The product runs with the attention that reads what it gives, part after part.
void CpuExecutor::execute_expansion(const Op& op, int layer) {
  const Mla& attention = latents_of(op, weights_.shape);
  const AttentionInputs& inputs = inputs_.attention(latent_phase_);
  std::int64_t context = 0;
  for (const std::int32_t tokens : inputs.context_lens) context += tokens;
  require(op.m == context && op.n == attention.expanded_width(), op, "has another shape");
  expansion_ = &op;
  expansion_product_ = bind_matmul(op, layer);
}

void CpuExecutor::execute_absorption(const Op& op, int layer) {
  const Mla& attention = latents_of(op, weights_.shape);
  const SlotWeights& bound = weights_.in(op.weight, layer);
  const AttentionInputs& inputs = inputs_.attention(latent_phase_);
  const int tokens = inputs.query_start_loc.back();
  const bool of_k = op.output == Buffer::latent_queries;
  require(bound.count == 1 && op.m == std::int64_t{tokens} * attention.num_attention_heads &&
              op.n == (of_k ? attention.kv_lora_rank : attention.v_head_dim),
          op, "has another shape");
  kernels::AbsorbArgs args{.sizes = latent_sizes(attention), .kv_b_proj = bound.weights[0], .num_tokens = tokens};
  if (of_k) {
    const Rows queries = query_rows(op);
    args.x = queries.first + inputs.first_token * queries.stride, args.x_stride = queries.stride;
    args.y = make_rows(Buffer::latent_queries, tokens);
    return kernels::cpu::absorb_k(threads_, workspace_, args);
  }
  args.x = values(Buffer::latent_outputs);
  args.x_stride = std::int64_t{attention.num_attention_heads} * attention.kv_lora_rank;
  args.y = values(Buffer::attention) + std::ptrdiff_t{inputs.first_token} * attention.value_width();
  kernels::cpu::absorb_v(threads_, workspace_, args);
  latent_phase_ = Phase::decode;
}

void CpuExecutor::execute_latent_attention(const Op& op, int layer, Phase phase) {
  const Mla& attention = latents_of(op, weights_.shape);
  const AttentionInputs& inputs = inputs_.attention(phase);
  const bool absorbed = op.attention.is_latent;
  require(op.attention.num_sequences == inputs.num_seqs && phase == latent_phase_ &&
              op.attention.num_query_heads == attention.num_attention_heads,
          op, "has another shape");
  require(op.attention.block_size == kv_.options().block_size &&
              (!absorbed || op.attention.kv_dtype == kv_.options().dtype),
          op, "is planned for another KV cache");
  if (!absorbed) return attend_expanded(op, layer, phase);
  kernels::cpu::paged_attention(threads_, workspace_,
                                {.q = values(Buffer::latent_queries),
                                 .q_stride = std::int64_t{attention.num_attention_heads} * attention.latent_width(),
                                 .cache = kv_.layer(layer),
                                 .block_tables = inputs.block_tables.data(),
                                 .max_blocks_per_seq = inputs.max_blocks_per_seq,
                                 .query_start_loc = inputs.query_start_loc.data(),
                                 .context_lens = inputs.context_lens.data(),
                                 .out = make_rows(Buffer::latent_outputs, inputs.query_start_loc.back()),
                                 .num_seqs = inputs.num_seqs,
                                 .num_heads = attention.num_attention_heads,
                                 .scale = static_cast<float>(attention.score_scale()),
                                 .tree = inputs.trees()});
}

void CpuExecutor::attend_expanded(const Op& op, int layer, Phase phase) {
  const Mla& attention = latents_of(op, weights_.shape);
  const kernels::LatentSizes sizes = latent_sizes(attention);
  const AttentionInputs& inputs = inputs_.attention(phase);
  require(expansion_ != nullptr, op, "has nothing that was expanded");
  const Rows queries = query_rows(op);
  for (const ExpandedPart& part : expanded_.parts(sizes, inputs, expansion_product_.weights[0])) {
    charge(op);
    expanded_.expand(sizes, part, inputs, kv_.layer(layer), expansion_product_, threads_, workspace_);
    charge(*expansion_);
    const auto first_seq = static_cast<std::size_t>(part.first_seq);
    kernels::PagedAttentionArgs args{.q = queries.first + inputs.first_token * queries.stride +
                                          std::ptrdiff_t{part.first_head} * attention.qk_head_dim(),
                                     .q_stride = queries.stride,
                                     .cache = {},
                                     .query_start_loc = inputs.query_start_loc.data() + first_seq,
                                     .context_lens = inputs.context_lens.data() + first_seq,
                                     .out = values(Buffer::attention) +
                                            std::ptrdiff_t{inputs.first_token} * attention.value_width() +
                                            std::ptrdiff_t{part.first_head} * attention.v_head_dim,
                                     .num_seqs = part.end_seq - part.first_seq,
                                     .num_heads = part.num_heads,
                                     .scale = static_cast<float>(attention.score_scale()),
                                     .out_stride = attention.value_width(),
                                     .tree = inputs.trees(part.first_seq)};
    expanded_.bind(args);
    kernels::cpu::paged_attention(threads_, workspace_, args);
  }
  expansion_ = nullptr;
  latent_phase_ = Phase::decode;
}

}  // namespace dculab::engine
