#include "model/parameters.hpp"

#include "model/weight_shapes.hpp"

namespace dculab {

double num_parameters(const ModelShape& model, CountedExperts experts) {
  const double embedding = static_cast<double>(model.vocab_size) * model.hidden_size;
  double values = embedding * (model.tie_word_embeddings ? 1 : 2) + plain_values(model);
  for (std::size_t index = 0; index < model.kinds.size(); ++index) {
    LayerKind kind = model.kinds[index];
    if (kind.experts && experts == CountedExperts::of_a_token)
      kind.experts->num_experts = kind.experts->num_experts_per_tok;
    for (const WeightShape& weight : layer_weights(model, kind))
      if (!weight.is_plain) values += model.num_layers(index) * weight.matrix_values();
  }
  return values;
}

}  // namespace dculab
