#include "sim/tables/footprint.hpp"

#include <algorithm>

#include "core/kv/table.hpp"
#include "model/kv/kv_bytes.hpp"

namespace dculab::sim {

namespace {

// The mean over all layers, which are all alike in most models.
[[nodiscard]] Bytes mean_layer_bytes(const ModelShape& model, WeightFormat format) {
  if (model.kinds.size() == 1) return layer_matrix_bytes(model, model.kinds.front(), format);
  Bytes bytes;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    bytes += layer_matrix_bytes(model, model.kinds[kind], format) * model.num_layers(kind);
  return bytes / model.num_layers();
}

}  // namespace

Footprint footprint(const ModelShape& model, const FootprintRequest& request) {
  const double layers = model.num_layers();
  const double embedding = static_cast<double>(model.vocab_size) * model.hidden_size;
  const double kv_tokens = static_cast<double>(request.tokens) * request.batch;
  Footprint result;
  result.kv_heads = model.heads().num_key_value_heads;
  result.is_latent = model.has_latents();
  result.weight_bytes = weight_footprint(model, request.weights);
  result.layer_weight_bytes = mean_layer_bytes(model, request.weights);
  result.embedding_bytes = storage(model.dtype, embedding);
  result.head_bytes = model.tie_word_embeddings ? Bytes{} : result.embedding_bytes;
  result.norm_bytes = storage(model.dtype, plain_values(model));
  result.kv_bytes_per_token = kv_bytes_per_token(model, request.kv_cache_dtype);
  const Bytes residuals =
      (kv_residual_bytes(model, request.kv_cache_dtype, request.kv_residual_tokens) + recurrent_state_bytes(model)) *
      request.batch;
  result.kv_bytes = result.kv_bytes_per_token * kv_tokens + residuals;
  KvDemand kept = kv_demand(model, request.kv_cache_dtype, true);
  kept.state_tokens = 0;  // counted with the residuals
  result.kv_in_windows =
      result.kv_bytes_per_token * static_cast<double>(kept(request.tokens)) * request.batch + residuals;
  result.layer_kv_bytes = result.kv_bytes / layers;
  const Bytes left = std::max(Bytes(), result.layer_weight_bytes - residuals / layers);
  result.crossover_tokens = left / (result.kv_bytes_per_token / layers * request.batch);
  return result;
}

namespace {

// Of a model like one with latents, but with K and V: heads of the size of its values.
[[nodiscard]] Heads plain_heads(const Mla& attention) {
  return {attention.num_attention_heads, attention.num_attention_heads, attention.v_head_dim};
}

[[nodiscard]] Heads plain_heads(const CompressedAttention& attention) {
  return {attention.num_attention_heads, attention.num_attention_heads, attention.head_dim};
}

// DeepSeek-V2's proportions: a latent of 4 heads and a rotated key of half a head.
[[nodiscard]] Mla latent_of(const Gqa& attention) {
  const Heads& heads = attention.heads;
  return {.num_attention_heads = heads.num_attention_heads,
          .kv_lora_rank = 4 * heads.head_dim,
          .qk_nope_head_dim = heads.head_dim,
          .qk_rope_head_dim = heads.head_dim / 2,
          .v_head_dim = heads.head_dim,
          .position = attention.position};
}

[[nodiscard]] ModelShape without_latents(ModelShape model) {
  for (LayerKind& kind : model.kinds)
    if (const Mla* latent = kind.mla())
      kind.attention = Gqa{.heads = plain_heads(*latent), .position = latent->position};
    else if (const CompressedAttention* entries = kind.compressed())
      kind.attention = Gqa{.heads = plain_heads(*entries), .position = entries->position};
  return model;
}

[[nodiscard]] ModelShape with_latents(ModelShape model) {
  for (LayerKind& kind : model.kinds)
    if (kind.has_kv_heads()) kind.attention = latent_of(kind.gqa());
  model.kv_sources.clear();
  return model;
}

}  // namespace

std::vector<Footprint> footprint_table(const ModelShape& model, const FootprintRequest& request) {
  std::vector<Footprint> rows;
  const bool is_latent = model.has_latents();
  const ModelShape grouped = is_latent ? without_latents(model) : model;
  for (const int kv_heads : grouped.possible_kv_heads())
    rows.push_back(footprint(with_kv_heads(grouped, kv_heads), request));
  if (combines({.dtype = request.kv_cache_dtype}, KvFeature::missing_kv))
    rows.push_back(footprint(is_latent ? model : with_latents(model), request));
  return rows;
}

}  // namespace dculab::sim
