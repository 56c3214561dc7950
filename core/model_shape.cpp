#include "core/model_shape.hpp"

#include <utility>

namespace dculab {
namespace {

void require_positive(std::vector<std::string>& found, const char* field, int value) {
  if (value <= 0) found.push_back(std::string(field) + " must be positive, not " + std::to_string(value));
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
                                     {"num_hidden_layers", model.num_hidden_layers},
                                     {"num_attention_heads", model.num_attention_heads},
                                     {"num_key_value_heads", model.num_key_value_heads},
                                     {"head_dim", model.head_dim},
                                     {"vocab_size", model.vocab_size},
                                     {"max_position_embeddings", model.max_position_embeddings}})
    require_positive(found, field, value);
  if (!found.empty()) return found;
  if (model.num_attention_heads % model.num_key_value_heads != 0)
    found.push_back("num_attention_heads (" + std::to_string(model.num_attention_heads) +
                    ") is not a multiple of num_key_value_heads (" + std::to_string(model.num_key_value_heads) + ")");
  if (model.head_dim % 2 != 0) found.push_back("head_dim must be even for rotary embedding");
  return found;
}

double layer_matrix_values(const ModelShape& model) {
  const double hidden = model.hidden_size;
  const double attention = hidden * (2.0 * model.query_width() + 2.0 * model.kv_width());
  const double matrices = model.mlp == MlpKind::gated ? 3.0 : 2.0;
  return attention + matrices * hidden * model.intermediate_size;
}

Bytes weight_footprint(const ModelShape& model, WeightFormat format) {
  const double layers = model.num_hidden_layers;
  const double embedding = static_cast<double>(model.vocab_size) * model.hidden_size;
  const double norms = (2.0 * layers + 1.0) * model.hidden_size;
  const double unquantized = embedding * (model.tie_word_embeddings ? 1.0 : 2.0) + norms;
  // Each projection is stored apart, but their scales add up as if they were one matrix.
  return weight_storage(format, layers * layer_matrix_values(model)) + storage(model.dtype, unquantized);
}

Bytes kv_bytes_per_token(const ModelShape& model, Dtype kv_cache_dtype) {
  return storage(kv_cache_dtype, 2.0 * model.kv_width() * model.num_hidden_layers);
}

}  // namespace dculab
