#include "model/model_shape.hpp"

#include <utility>

#include "core/kivi.hpp"

namespace dculab {
namespace {

void require_size(std::vector<std::string>& found, const std::string& field, std::int64_t value, int most) {
  if (value <= 0) found.push_back(field + " must be positive, not " + std::to_string(value));
  if (value > most)
    found.push_back(field + " must be at most " + std::to_string(most) + ", not " + std::to_string(value));
}

}  // namespace

ModelShape with_kv_heads(ModelShape model, int num_key_value_heads) {
  model.num_key_value_heads = num_key_value_heads;
  return model;
}

std::vector<std::string> problems(const ModelShape& model) {
  std::vector<std::string> found;
  for (const auto& [field, value] : {std::pair{"hidden_size", model.hidden_size},
                                     {"intermediate_size", model.intermediate_size},
                                     {"num_attention_heads", model.num_attention_heads},
                                     {"num_key_value_heads", model.num_key_value_heads},
                                     {"head_dim", model.head_dim},
                                     {"vocab_size", model.vocab_size},
                                     {"max_position_embeddings", model.max_position_embeddings}})
    require_size(found, field, value, kLargestModelField);
  require_size(found, "num_hidden_layers", model.num_hidden_layers, kMostLayers);
  if (!found.empty()) return found;
  require_size(found, "num_attention_heads * head_dim", std::int64_t{model.num_attention_heads} * model.head_dim,
               kLargestModelField);
  if (model.quantized_lm_head && model.tie_word_embeddings)
    found.push_back("lm_head is quantized, but it is the embedding (tie_word_embeddings), which is not");
  if (model.num_attention_heads % model.num_key_value_heads != 0)
    found.push_back("num_attention_heads (" + std::to_string(model.num_attention_heads) +
                    ") is not a multiple of num_key_value_heads (" + std::to_string(model.num_key_value_heads) + ")");
  if (model.position == PositionKind::rope && model.head_dim % 2 != 0)
    found.push_back("head_dim must be even for rotary embedding");
  if (model.sliding_window < 0) found.push_back("sliding_window must not be negative");
  return found;
}

double layer_matrix_values(const ModelShape& model) {
  const double hidden = model.hidden_size;
  const double attention = hidden * (2.0 * model.query_width() + 2.0 * model.kv_width());
  const double matrices = model.mlp == MlpKind::gated ? 3.0 : 2.0;
  return attention + matrices * hidden * model.intermediate_size;
}

double vector_values(const ModelShape& model) {
  const double layers = model.num_hidden_layers;
  const double hidden = model.hidden_size;
  const double norms = layers * (model.block == BlockKind::parallel ? 1 : 2) + (model.embedding_norm ? 2 : 1);
  double biases = 0;  // of one layer
  if (model.qkv_bias) biases += model.query_width() + 2.0 * model.kv_width();
  if (model.attention_output_bias) biases += hidden;
  if (model.mlp_bias) biases += hidden + (model.mlp == MlpKind::gated ? 2.0 : 1.0) * model.intermediate_size;
  return norms * hidden * (model.norm == NormKind::layer_norm ? 2 : 1) + layers * biases;
}

Bytes weight_footprint(const ModelShape& model, WeightFormat format) {
  const double layers = model.num_hidden_layers;
  const double embedding = static_cast<double>(model.vocab_size) * model.hidden_size;
  const Bytes head = model.tie_word_embeddings ? Bytes() : weight_storage(model.head_format(format), embedding);
  // Each projection is stored apart, but their scales add up as if they were one matrix.
  return weight_storage(format, layers * layer_matrix_values(model)) + head +
         storage(model.dtype, embedding + vector_values(model));
}

Bytes kv_bytes_per_token(const ModelShape& model, Dtype kv_cache_dtype) {
  return kv_storage(kv_cache_dtype, 2.0 * model.kv_width() * model.num_hidden_layers, model.head_dim);
}

Bytes kv_residual_bytes(const ModelShape& model, Dtype kv_cache_dtype, int residual_tokens) {
  if (!is_kivi(kv_cache_dtype)) return Bytes();
  return kv_bytes_per_token(model, Dtype::f16) * residual_tokens;
}

}  // namespace dculab
