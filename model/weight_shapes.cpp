#include "model/weight_shapes.hpp"

namespace dculab {
namespace {

[[nodiscard]] WeightShape norm(const ModelShape& model, WeightSlot slot) {
  return {.slot = slot, .rows = model.hidden_size, .has_bias = model.norm == NormKind::layer_norm};
}

// Gains of the norms of Q and K.
void add_qk_norm(WeightShapes& weights, const Gqa& attention) {
  const Heads& heads = attention.heads;
  if (attention.qk_norm == QkNorm::none) return;
  const bool whole = attention.qk_norm == QkNorm::whole;
  weights.add({.slot = WeightSlot::qk_norm, .part = kQ, .rows = whole ? heads.query_width() : heads.head_dim});
  weights.add({.slot = WeightSlot::qk_norm, .part = kK, .rows = whole ? heads.kv_width() : heads.head_dim});
}

void add_attention(WeightShapes& weights, int hidden, const Gqa& attention) {
  const Heads& heads = attention.heads;
  weights.add({WeightSlot::qkv_proj, kQ, heads.query_width(), hidden, attention.qkv_bias});
  weights.add({WeightSlot::qkv_proj, kK, heads.kv_width(), hidden, attention.qkv_bias});
  weights.add({WeightSlot::qkv_proj, kV, heads.kv_width(), hidden, attention.qkv_bias});
  add_qk_norm(weights, attention);
  weights.add({WeightSlot::o_proj, 0, hidden, heads.query_width(), attention.output_bias});
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
  add_attention(weights, model.hidden_size, kind.attention);
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
