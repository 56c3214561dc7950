#include "engine/checkpoint/llama_weights.hpp"

namespace dculab::engine {
namespace {

void add_layer(std::vector<WeightSlot>& slots, const ModelShape& shape, const std::string& prefix,
               LayerWeights& layer) {
  const auto add = [&](const char* name, int rows, int columns, kernels::WeightView& view) {
    slots.push_back({prefix + name + ".weight", rows, columns, &view});
  };
  const int hidden = shape.hidden_size;
  add("input_layernorm", hidden, 0, layer.input_layernorm);
  add("self_attn.q_proj", shape.query_width(), hidden, layer.q_proj);
  add("self_attn.k_proj", shape.kv_width(), hidden, layer.k_proj);
  add("self_attn.v_proj", shape.kv_width(), hidden, layer.v_proj);
  add("self_attn.o_proj", hidden, shape.query_width(), layer.o_proj);
  add("post_attention_layernorm", hidden, 0, layer.post_attention_layernorm);
  add("mlp.gate_proj", shape.intermediate_size, hidden, layer.gate_proj);
  add("mlp.up_proj", shape.intermediate_size, hidden, layer.up_proj);
  add("mlp.down_proj", hidden, shape.intermediate_size, layer.down_proj);
}

}  // namespace

std::vector<WeightSlot> weight_slots(LlamaWeights& weights) {
  const ModelShape& shape = weights.shape;
  weights.layers.resize(static_cast<std::size_t>(shape.num_hidden_layers));
  std::vector<WeightSlot> slots;
  slots.push_back({"model.embed_tokens.weight", shape.vocab_size, shape.hidden_size, &weights.embed_tokens});
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer)
    add_layer(slots, shape, "model.layers." + std::to_string(layer) + ".", weights.layers[layer]);
  slots.push_back({"model.norm.weight", shape.hidden_size, 0, &weights.norm});
  if (!shape.tie_word_embeddings)
    slots.push_back({"lm_head.weight", shape.vocab_size, shape.hidden_size, &weights.lm_head});
  return slots;
}

void tie_head(LlamaWeights& weights) {
  if (weights.shape.tie_word_embeddings) weights.lm_head = weights.embed_tokens;
}

}  // namespace dculab::engine
