// Ops of multi-head latent attention. Projections that are absorbed are products of groups, one for each head.
#include <cmath>

#include "model/attention_work.hpp"
#include "model/decoder_ops.hpp"

namespace dculab {
namespace {

// RMS norms of the queries' latent and of the KV latent.
[[nodiscard]] Op plan_latent_norm(const StepSizes& sizes, const Mla& attention) {
  const int width = attention.q_lora_rank + attention.kv_lora_rank;
  return plan_head_norm({"latent_norm", WeightSlot::qk_norm, Buffer::qkv, Buffer::qkv}, sizes, width,
                        attention.kv_lora_rank, width);
}

// Rotates a part of each query head and the token's one key, and writes latent and key to the cache: 3 FLOP for each
// value that is rotated.
[[nodiscard]] Op plan_latent_cache(const StepSizes& sizes, const Mla& attention) {
  const auto tokens = static_cast<double>(sizes.tokens), written = tokens - static_cast<double>(sizes.unwritten);
  const double rotated = static_cast<double>(attention.num_attention_heads) * attention.qk_rope_head_dim;
  const int width = attention.latent_width();
  Op op = make_op(OpKind::rope_and_cache, {.name = "rope_and_cache", .input = Buffer::qkv, .output = Buffer::qkv},
                  sizes, sizes.tokens, attention.query_width() + width);
  op.rotates_part = true;
  op.flops = FlopCount(3 * tokens * (rotated + attention.qk_rope_head_dim));
  op.add({OperandRole::activation, activations(sizes, tokens * (rotated + width)),
          activations(sizes, attention.qk_rope_head_dim)});
  op.add({OperandRole::output, activations(sizes, tokens * rotated), activations(sizes, attention.qk_rope_head_dim)});
  op.attention.kv_dtype = sizes.options.kv_cache_dtype;
  op.attention.is_latent = true;
  if (written > 0)
    op.add({OperandRole::kv_write, kv_storage(sizes.options.kv_cache_dtype, written * width, width),
            storage(sizes.options.kv_cache_dtype, width)});
  return op;
}

// K and V of all heads for all tokens of the phase, of whose latents those before this step come from the cache.
[[nodiscard]] Op plan_expansion(const StepSizes& sizes, const Mla& attention, const PhaseTokens& tokens) {
  Op op = plan_matmul({"kv_b_proj", WeightSlot::kv_b_proj, Buffer::qkv, Buffer::expanded}, sizes,
                      sizes.format_of(WeightSlot::kv_b_proj), tokens.context, attention.expanded_width(),
                      attention.kv_lora_rank);
  const int width = attention.latent_width();
  if (const auto cached = static_cast<double>(tokens.context - tokens.added); cached > 0)
    op.add({OperandRole::kv_read, kv_storage(sizes.options.kv_cache_dtype, cached * width, width),
            storage(sizes.options.kv_cache_dtype, width)});
  return op;
}

void plan_phase(StepPlan& plan, const StepSizes& sizes, const Mla& attention, Phase phase, LatentForm form) {
  const PhaseTokens tokens = tokens_of(plan.batch, phase);
  if (tokens.added == 0) return;
  const int heads = attention.num_attention_heads;
  const Op attend = of_layers(plan_attention(attention, sizes.options, plan.batch, phase, form), sizes);
  if (form == LatentForm::expand) {
    plan.ops.push_back(plan_expansion(sizes, attention, tokens));
    return plan.ops.push_back(attend);
  }
  plan.ops.push_back(plan_grouped_product({"absorb_k", WeightSlot::kv_b_proj, Buffer::queries, Buffer::latent_queries},
                                          sizes, heads, tokens.added, attention.kv_lora_rank,
                                          attention.qk_nope_head_dim));
  plan.ops.push_back(attend);
  plan.ops.push_back(
      plan_grouped_product({"absorb_v", WeightSlot::kv_b_proj, Buffer::latent_outputs, Buffer::attention}, sizes, heads,
                           tokens.added, attention.v_head_dim, attention.kv_lora_rank));
}

}  // namespace

void plan_latent_attention(StepPlan& plan, const StepSizes& sizes) {
  const Mla& attention = *sizes.layer().mla();
  const WeightFormat format = sizes.format_of(WeightSlot::o_proj);
  const int hidden = sizes.model.hidden_size;
  const bool has_latent = attention.q_lora_rank > 0;
  const int queries = has_latent ? attention.q_lora_rank : attention.query_width();
  plan.ops.push_back(plan_matmul({"qkv_a_proj", WeightSlot::qkv_a_proj, Buffer::normed, Buffer::qkv}, sizes, format,
                                 sizes.tokens, queries + attention.latent_width(), hidden, bias_if(attention.bias)));
  plan.ops.push_back(plan_latent_norm(sizes, attention));
  if (has_latent)
    plan.ops.push_back(plan_matmul({"q_b_proj", WeightSlot::q_b_proj, Buffer::qkv, Buffer::queries}, sizes, format,
                                   sizes.tokens, attention.query_width(), queries));
  plan.ops.push_back(plan_latent_cache(sizes, attention));
  plan_phase(plan, sizes, attention, Phase::prefill, sizes.options.prefill_latents);
  plan_phase(plan, sizes, attention, Phase::decode, sizes.options.decode_latents);
  plan.ops.push_back(plan_matmul({"o_proj", WeightSlot::o_proj, Buffer::attention, Buffer::projected}, sizes, format,
                                 sizes.tokens, hidden, attention.value_width(), bias_if(attention.bias)));
}

}  // namespace dculab
