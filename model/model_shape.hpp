// The shape of a decoder-only transformer: all that is needed to count its work. A model is a graph: kinds of layers,
// and which kind each layer is.
//
// Field names are those of a Hugging Face `config.json`, so any Hub model can be studied from that one file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "model/layer_kind.hpp"
#include "model/tensor_names.hpp"

namespace dculab {

enum class NormKind : std::uint8_t { rms_norm, layer_norm };  // layer_norm has a weight and a bias

// The most that a size of a model may be, and the query width: far beyond any model, and small enough that a sum of a
// few fits an int and a product of two 64 bits. Layers take memory each.
inline constexpr int kLargestModelField = 1 << 24;
inline constexpr int kMostLayers = 10'000;
inline constexpr int kMostExperts = 1 << 14;

// Matrices of the layers that a quantized checkpoint leaves in the model's dtype.
struct PlainParts {
  bool attention = false;       // Q, K, V and O
  bool mlp = false;             // of layers without experts
  bool shared_experts = false;  // what all tokens go through beside routed experts
  bool experts = false;         // the routed ones

  friend bool operator==(const PlainParts&, const PlainParts&) = default;
};

struct ModelShape {
  std::string name{};  // for reports
  int hidden_size = 0;
  int vocab_size = 0;
  int max_position_embeddings = 0;
  bool tie_word_embeddings = false;
  NormKind norm = NormKind::rms_norm;
  double norm_eps = 1e-6;                             // rms_norm_eps, layer_norm_epsilon
  bool unit_offset_norms = false;                     // norms multiply by 1 + weight: Gemma
  bool embedding_norm = false;                        // a norm between the embedding and the first layer: BLOOM
  int learned_positions = 0;                          // rows of an embedding of positions; 0 = none: OPT
  double embedding_scale = 1.0;                       // embeddings are multiplied by it: Gemma's sqrt(hidden_size)
  double final_logit_soft_cap = 0;                    // logits become cap * tanh(logit / cap); 0 = none: Gemma 2
  Dtype dtype = Dtype::f16;                           // the checkpoint's own; of a quantized one, what is not quantized
  int residual_streams = 1;                           // mixed before and after each half of a layer: hyper-connections
  int sinkhorn_iterations = 0;                        // of the matrix that mixes them
  std::optional<WeightFormat> quantization{};         // of the layers' matrices, when the checkpoint is quantized
  std::optional<WeightFormat> expert_quantization{};  // of the routed experts, where theirs is another
  ActivationMode quantized_activations = ActivationMode::exact;  // that its checkpoint asks of quantized products
  PlainParts plain{};                                            // what of the layers is in dtype all the same
  bool quantized_lm_head = false;                                // lm_head is in the layers' format too, not in dtype
  const TensorNames* tensor_names = &kLlamaTensorNames;          // of its checkpoint; null: priced, not run
  std::vector<std::string> notes{};  // what config.json left to assume, and what of it is not counted: sentences
  int num_nextn_predict_layers = 0;  // behind the last layer, that predict further tokens: model/draft_heads.hpp
  int tensor_parallel_size = 1;      // devices that each have such a part of every layer, see model/shard.hpp
  std::vector<LayerKind> kinds = std::vector<LayerKind>(1);  // in the order of their first layers
  std::vector<std::uint8_t> layers{};  // [num_hidden_layers]: of which kind each is, an index of `kinds`
  std::vector<int> kv_sources{};       // [num_hidden_layers]: the layer whose K and V each reads; empty = its own

  [[nodiscard]] int num_layers() const { return static_cast<int>(layers.size()); }
  [[nodiscard]] int num_layers(std::size_t kind) const;
  [[nodiscard]] const LayerKind& layer(int index) const { return kinds[layers[static_cast<std::size_t>(index)]]; }
  [[nodiscard]] int kv_source(int layer) const {
    return kv_sources.empty() ? layer : kv_sources[static_cast<std::size_t>(layer)];
  }
  // As the KV cache has them in the first kind of layers that has any: in all, where these have the same.
  [[nodiscard]] Heads heads() const;
  // Numbers of KV heads that the model could have, the most first: the divisors of its query heads, or its own one
  // where layers keep latents, or have heads that differ.
  [[nodiscard]] std::vector<int> possible_kv_heads() const;
  [[nodiscard]] bool has_alibi() const;
  [[nodiscard]] bool has_latents() const;     // in any layer: latents, or compressed entries; one for all heads
  [[nodiscard]] bool has_delta_nets() const;  // likewise
  [[nodiscard]] bool has_compressed_entries() const;
  [[nodiscard]] bool has_experts() const;
  [[nodiscard]] bool has_unequal_heads() const;  // layers with heads of their own, or groups in one, differ

  // What the checkpoint stores the layers' matrices in, as far as they are quantized.
  [[nodiscard]] WeightFormat layer_format() const { return quantization.value_or(WeightFormat{dtype, 0}); }
  // What lm_head is in when the layers' matrices are in `layers`.
  [[nodiscard]] WeightFormat head_format(WeightFormat layers_format) const {
    return quantized_lm_head ? layers_format : WeightFormat{dtype, 0};
  }
  // What a slot of a layer is in when `layers_format` is the format of what is quantized there.
  [[nodiscard]] WeightFormat slot_format(WeightSlot slot, const LayerKind& kind, WeightFormat layers_format) const;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

// Weights that mix the residual streams around a half of a layer: of each what it gives to the half's input and what it
// gets of the output, and a matrix.
[[nodiscard]] constexpr int stream_weights(int streams) { return (2 + streams) * streams; }

// What tells the layers of a kind from the others, for reports: "window 4096", "full attention"; empty where there is
// one kind.
[[nodiscard]] std::string kind_label(const ModelShape& model, std::size_t kind);

// `count` layers of one kind.
void set_layers(ModelShape& model, int count, LayerKind kind);

// One more layer, of a kind that the model may have already.
void add_layer(ModelShape& model, const LayerKind& kind);

// The same model with another number of layers: the first of its own, and where they are too few all of them again.
[[nodiscard]] ModelShape with_layers(ModelShape model, int count);

// The same model with another number of KV heads: what-if studies of the group size. One whose layers have unequal
// heads is left as it is.
[[nodiscard]] ModelShape with_kv_heads(ModelShape model, int num_key_value_heads);

// Whether both have the same sizes and layers, however many KV heads those have.
[[nodiscard]] bool same_but_for_kv_heads(const ModelShape& a, const ModelShape& b);

// Everything that makes the shape unusable, one sentence each; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const ModelShape& model);

// Matrix weights of one layer of a kind, without norms and routers: Q, K, V, O and the MLP, all experts.
[[nodiscard]] double layer_matrix_values(const ModelShape& model, const LayerKind& kind);

// Their bytes when `format` is the format of what is quantized.
[[nodiscard]] Bytes layer_matrix_bytes(const ModelShape& model, const LayerKind& kind, WeightFormat format);

// All that no quantization touches, beside embedding and lm_head: norms, biases and routers of the whole model.
[[nodiscard]] double plain_values(const ModelShape& model);

// Bytes of all weights: `format` for the layers' matrices that are not plain, and for lm_head if it is quantized; the
// others are in model.dtype. A tied head is counted once.
[[nodiscard]] Bytes weight_footprint(const ModelShape& model, WeightFormat format);

}  // namespace dculab
