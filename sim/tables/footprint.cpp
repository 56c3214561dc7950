#include "sim/tables/footprint.hpp"

#include <algorithm>

namespace dculab::sim {

Footprint footprint(const ModelShape& model, const FootprintRequest& request) {
  const double layers = model.num_layers();
  const double embedding = static_cast<double>(model.vocab_size) * model.hidden_size;
  const double kv_tokens = static_cast<double>(request.tokens) * request.batch;
  Footprint result;
  result.kv_heads = model.heads().num_key_value_heads;
  result.weight_bytes = weight_footprint(model, request.weights);
  result.layer_weight_bytes = layer_matrix_bytes(model, model.kinds.front(), request.weights);
  result.embedding_bytes = storage(model.dtype, embedding);
  result.head_bytes = model.tie_word_embeddings ? Bytes{} : result.embedding_bytes;
  result.norm_bytes = storage(model.dtype, plain_values(model));
  result.kv_bytes_per_token = kv_bytes_per_token(model, request.kv_cache_dtype);
  const Bytes residuals = kv_residual_bytes(model, request.kv_cache_dtype, request.kv_residual_tokens) * request.batch;
  result.kv_bytes = result.kv_bytes_per_token * kv_tokens + residuals;
  result.layer_kv_bytes = result.kv_bytes / layers;
  const Bytes left = std::max(Bytes(), result.layer_weight_bytes - residuals / layers);
  result.crossover_tokens = left / (result.kv_bytes_per_token / layers * request.batch);
  return result;
}

std::vector<Footprint> footprint_table(const ModelShape& model, const FootprintRequest& request) {
  std::vector<Footprint> rows;
  for (int kv_heads = model.heads().num_attention_heads; kv_heads >= 1; --kv_heads)
    if (model.heads().num_attention_heads % kv_heads == 0)
      rows.push_back(footprint(with_kv_heads(model, kv_heads), request));
  return rows;
}

}  // namespace dculab::sim
