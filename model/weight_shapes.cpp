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
  if (!attention.shares_kv)
    weights.add({.slot = WeightSlot::qk_norm, .part = kK, .rows = whole ? heads.kv_width() : heads.head_dim});
}

void add_attention(WeightShapes& weights, int hidden, const Gqa& attention) {
  const Heads& heads = attention.heads;
  const int gates = attention.output_gate ? heads.query_width() : 0;
  weights.add({WeightSlot::qkv_proj, kQ, heads.query_width() + gates, hidden, attention.qkv_bias});
  for (int part = 0; part < attention.kv_projections(); ++part)
    weights.add(
        {WeightSlot::qkv_proj, kK + static_cast<std::size_t>(part), heads.kv_width(), hidden, attention.qkv_bias});
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

// Entries are made from plain projections of the hidden state, with a bias of their weights by the place in an entry.
void add_compressor(WeightShapes& weights, int hidden, const CompressedAttention& attention) {
  if (attention.compress_ratio == 0) return;
  const int values = attention.series() * attention.entry_width();
  weights.add({.slot = WeightSlot::compress_proj,
               .rows = attention.compressor_width() + attention.index_n_heads,
               .columns = hidden,
               .is_plain = true});
  weights.add({.slot = WeightSlot::compress_norm, .rows = attention.entry_width()});
  weights.add({.slot = WeightSlot::compress_norm,
               .part = 1,
               .rows = attention.compress_ratio,
               .columns = values,
               .is_plain = true});
  if (attention.has_indexer())
    weights.add({WeightSlot::q_b_proj, kIndexer, attention.index_query_width(), attention.q_lora_rank});
}

void add_attention(WeightShapes& weights, int hidden, const CompressedAttention& attention) {
  weights.add({WeightSlot::qkv_a_proj, kQ, attention.q_lora_rank, hidden});
  weights.add({WeightSlot::qkv_a_proj, kK, attention.head_dim, hidden});
  weights.add({.slot = WeightSlot::qk_norm, .part = kQ, .rows = attention.q_lora_rank});
  weights.add({.slot = WeightSlot::qk_norm, .part = kK, .rows = attention.head_dim});
  weights.add({WeightSlot::q_b_proj, 0, attention.query_width(), attention.q_lora_rank});
  add_compressor(weights, hidden, attention);
  weights.add({.slot = WeightSlot::sinks, .rows = attention.num_attention_heads});
  weights.add({.slot = WeightSlot::o_a_proj,
               .rows = attention.o_lora_rank,
               .columns = attention.query_width() / attention.o_groups,
               .copies = attention.o_groups});
  weights.add({WeightSlot::o_proj, 0, hidden, attention.output_latents()});
}

// Of the streams before one half of a layer: a matrix, and a bias of its rows and three factors.
void add_streams(WeightShapes& weights, const ModelShape& model, std::size_t half) {
  if (model.residual_streams == 1) return;
  const int rows = stream_weights(model.residual_streams);
  weights.add({.slot = WeightSlot::streams,
               .part = half,
               .rows = rows,
               .columns = model.residual_streams * model.hidden_size,
               .has_bias = true,
               .is_plain = true});
  weights.add({.slot = WeightSlot::streams, .part = half, .rows = 3});
}

// A router reads as many bytes in its own format as in the layers': it is never quantized.
void add_experts(WeightShapes& weights, int hidden, const Experts& experts) {
  const int count = experts.num_experts, held = experts.held(), width = experts.intermediate_size;
  weights.add(
      {.slot = WeightSlot::router, .rows = count, .columns = hidden, .has_bias = experts.bias, .is_plain = true});
  if (experts.correction_bias) weights.add({.slot = WeightSlot::router, .part = kCorrectionBias, .rows = count});
  if (experts.own_norms) {  // a factor of each expert, and of each value of the router's input
    weights.add({.slot = WeightSlot::router, .part = kExpertScale, .rows = count});
    weights.add({.slot = WeightSlot::router, .part = kRouterScale, .rows = hidden});
    weights.add({.slot = WeightSlot::mlp_norm, .part = 1, .rows = hidden});
    for (const std::size_t part : {1U, 2U})
      weights.add({.slot = WeightSlot::mlp_post_norm, .part = part, .rows = hidden});
  }
  for (const std::size_t part : {kGate, kUp})
    weights.add({.slot = WeightSlot::expert_up_proj,
                 .part = part,
                 .rows = width,
                 .columns = hidden,
                 .has_bias = experts.bias,
                 .copies = held});
  weights.add({.slot = WeightSlot::expert_down_proj,
               .rows = hidden,
               .columns = width,
               .has_bias = experts.bias,
               .copies = held});
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
  for (const std::size_t half : {0U, 1U}) add_streams(weights, model, half);
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
  if (const int streams = model.residual_streams; streams > 1) {
    weights.add({.slot = WeightSlot::head_streams,
                 .rows = streams,
                 .columns = streams * model.hidden_size,
                 .has_bias = true,
                 .is_plain = true});
    weights.add({.slot = WeightSlot::head_streams, .part = 1, .rows = 1});
  }
  weights.add(norm(model, WeightSlot::final_norm));
  if (!model.tie_word_embeddings)
    weights.add({.slot = WeightSlot::lm_head, .rows = model.vocab_size, .columns = model.hidden_size});
  return weights;
}

}  // namespace dculab
