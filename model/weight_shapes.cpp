#include "model/weight_shapes.hpp"

namespace dculab {
namespace {

[[nodiscard]] WeightShape norm(const ModelShape& model, WeightSlot slot) {
  return {.slot = slot, .rows = model.hidden_size, .has_bias = model.norm == NormKind::layer_norm};
}

// Gains of the norms of Q and K.
void add_qk_norm(WeightShapes& weights, const Gqa& attention) {
  const Heads& heads = attention.heads;
  if (attention.qk_norm == QkNorm::none || attention.qk_norm == QkNorm::unweighted) return;
  const bool whole = attention.qk_norm == QkNorm::whole;
  weights.add({.slot = WeightSlot::qk_norm, .part = kQ, .rows = whole ? heads.query_width() : heads.head_dim});
  weights.add({.slot = WeightSlot::qk_norm, .part = kK, .rows = whole ? heads.kv_width() : heads.head_dim});
}

void add_attention(WeightShapes& weights, int hidden, const Gqa& attention) {
  const Heads& heads = attention.heads;
  const int gates = attention.output_gate ? heads.query_width() : 0;
  weights.add({WeightSlot::qkv_proj, kQ, heads.query_width() + gates, hidden, attention.qkv_bias});
  for (const std::size_t part : {kK, kV})
    if (!attention.shares_kv) weights.add({WeightSlot::qkv_proj, part, heads.kv_width(), hidden, attention.qkv_bias});
  add_qk_norm(weights, attention);
  if (attention.sinks) weights.add({.slot = WeightSlot::sinks, .rows = heads.num_attention_heads});
  weights.add({WeightSlot::o_proj, 0, hidden, heads.query_width(), attention.output_bias});
}

void add_attention(WeightShapes& weights, int hidden, const Mla& attention) {
  const bool has_latent = attention.q_lora_rank > 0;
  const int queries = has_latent ? attention.q_lora_rank : attention.query_width();
  weights.add({WeightSlot::qkv_a_proj, kQ, queries, hidden, has_latent && attention.bias});
  weights.add({WeightSlot::qkv_a_proj, kK, attention.latent_width(), hidden, attention.bias});
  if (has_latent) weights.add({.slot = WeightSlot::qk_norm, .part = kQ, .rows = queries});
  weights.add({.slot = WeightSlot::qk_norm, .part = kK, .rows = attention.kv_lora_rank});
  if (has_latent) weights.add({WeightSlot::q_b_proj, 0, attention.query_width(), queries});
  weights.add({WeightSlot::kv_b_proj, 0, attention.expanded_width(), attention.kv_lora_rank});
  weights.add({WeightSlot::o_proj, 0, hidden, attention.value_width(), attention.bias});
}

// Decay and step of each head have a bias and a factor.
void add_attention(WeightShapes& weights, int hidden, const GatedDeltaNet& net) {
  weights.add({WeightSlot::delta_proj, 0, net.conv_width() + net.value_width(), hidden});
  weights.add({WeightSlot::delta_gates, 0, 2 * net.num_value_heads, hidden});
  weights.add({.slot = WeightSlot::delta_conv, .rows = net.conv_width(), .columns = net.conv_kernel, .is_plain = true});
  weights.add({.slot = WeightSlot::delta_norm, .rows = net.value_head_dim});
  weights.add({.slot = WeightSlot::delta_norm, .part = 1, .rows = 2 * net.num_value_heads});
  weights.add({WeightSlot::o_proj, 0, hidden, net.value_width()});
}

// A router reads as many bytes in its own format as in the layers': it is never quantized.
void add_experts(WeightShapes& weights, int hidden, const Experts& experts) {
  const int count = experts.num_experts, width = experts.intermediate_size;
  weights.add(
      {.slot = WeightSlot::router, .rows = count, .columns = hidden, .has_bias = experts.bias, .is_plain = true});
  if (experts.correction_bias) weights.add({.slot = WeightSlot::router, .part = kCorrectionBias, .rows = count});
  for (const std::size_t part : {kGate, kUp})
    weights.add({.slot = WeightSlot::expert_up_proj,
                 .part = part,
                 .rows = width,
                 .columns = hidden,
                 .has_bias = experts.bias,
                 .copies = count});
  weights.add({.slot = WeightSlot::expert_down_proj,
               .rows = hidden,
               .columns = width,
               .has_bias = experts.bias,
               .copies = count});
  if (experts.shared_gate)
    weights.add({.slot = WeightSlot::shared_gate, .rows = 1, .columns = hidden, .is_plain = true});
}

void add_mlp(WeightShapes& weights, int hidden, const Dense& mlp) {
  if (mlp.intermediate_size == 0) return;  // experts alone
  for (std::size_t part = 0; part < (mlp.kind == MlpKind::gated ? 2U : 1U); ++part)
    weights.add({WeightSlot::up_proj, part, mlp.intermediate_size, hidden, mlp.bias});
  weights.add({WeightSlot::down_proj, 0, hidden, mlp.intermediate_size, mlp.bias});
}

}  // namespace

WeightShapes layer_weights(const ModelShape& model, const LayerKind& kind) {
  WeightShapes weights;
  const bool pre = kind.norms != NormPlacement::post, post = kind.norms != NormPlacement::pre;
  if (pre) weights.add(norm(model, WeightSlot::attention_norm));
  std::visit([&](const auto& attention) { add_attention(weights, model.hidden_size, attention); }, kind.attention);
  if (post) weights.add(norm(model, WeightSlot::attention_post_norm));
  if (pre && kind.block != BlockKind::parallel) weights.add(norm(model, WeightSlot::mlp_norm));
  if (kind.experts) add_experts(weights, model.hidden_size, *kind.experts);
  add_mlp(weights, model.hidden_size, kind.mlp);
  if (post) weights.add(norm(model, WeightSlot::mlp_post_norm));
  return weights;
}

WeightShapes outer_weights(const ModelShape& model) {
  WeightShapes weights;
  weights.add({.slot = WeightSlot::embed_tokens, .rows = model.vocab_size, .columns = model.hidden_size});
  if (model.learned_positions > 0)
    weights.add({.slot = WeightSlot::embed_tokens,
                 .part = kPositionPart,
                 .rows = model.learned_positions,
                 .columns = model.hidden_size,
                 .is_plain = true});
  if (model.embedding_norm) weights.add(norm(model, WeightSlot::embed_norm));
  weights.add(norm(model, WeightSlot::final_norm));
  if (!model.tie_word_embeddings)
    weights.add({.slot = WeightSlot::lm_head, .rows = model.vocab_size, .columns = model.hidden_size});
  return weights;
}

}  // namespace dculab
