// The shape of a decoder-only transformer: all that is needed to count its work.
//
// Field names are those of a Hugging Face `config.json`, so any Hub model can be studied from that one file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"

namespace dculab {

enum class MlpKind : std::uint8_t {
  gated,  // down(act(gate(x)) * up(x)): three matrices, Llama
  plain,  // down(act(up(x))): two matrices, the classic transformer
};

enum class NormKind : std::uint8_t { rms_norm, layer_norm };  // layer_norm has a weight and a bias
enum class ActivationKind : std::uint8_t { silu, gelu, gelu_tanh };
enum class PositionKind : std::uint8_t { rope, alibi };

// How attention and MLP of a layer follow one another.
enum class BlockKind : std::uint8_t {
  sequential,          // x += attention(norm1(x)); x += mlp(norm2(x))
  parallel,            // x += attention(norm1(x)) + mlp(norm1(x)): Falcon 7B
  parallel_two_norms,  // x += attention(norm1(x)) + mlp(norm2(x)): Falcon 40B
};

enum class RopeScalingKind : std::uint8_t { none, linear, llama3 };

// `rope_scaling` of config.json. Source of the llama3 rule: transformers, modeling_rope_utils.py.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;                 // llama3 only
  double high_freq_factor = 4.0;                // llama3 only
  int original_max_position_embeddings = 8192;  // llama3 only

  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

// The most that a size of a model may be, and the query width: far beyond any model, and small enough that a sum of a
// few fits an int and a product of two 64 bits. Layers take memory each.
inline constexpr int kLargestModelField = 1 << 24;
inline constexpr int kMostLayers = 1 << 16;

struct ModelShape {
  std::string name{};  // for reports
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;  // query heads
  int num_key_value_heads = 0;  // KV heads
  int head_dim = 0;
  int vocab_size = 0;
  int max_position_embeddings = 0;
  bool tie_word_embeddings = false;
  MlpKind mlp = MlpKind::gated;
  ActivationKind activation = ActivationKind::silu;
  NormKind norm = NormKind::rms_norm;
  BlockKind block = BlockKind::sequential;
  PositionKind position = PositionKind::rope;
  double alibi_scale = 1.0;     // of the slopes: Falcon adds the bias before it divides by sqrt(head_dim)
  bool embedding_norm = false;  // a norm between the embedding and the first layer: BLOOM
  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  int sliding_window = 0;                      // a token sees itself and the window - 1 tokens before it; 0 = all
  Dtype dtype = Dtype::f16;                    // the checkpoint's own; of a quantized one, what is not quantized
  std::optional<WeightFormat> quantization{};  // of the layers' matrices, when the checkpoint is quantized
  bool quantized_lm_head = false;              // lm_head is in the layers' format too, not in dtype
  double norm_eps = 1e-6;                      // rms_norm_eps, layer_norm_epsilon
  double rope_theta = 10000.0;
  RopeScaling rope_scaling{};
  int tensor_parallel_size = 1;  // devices that each have such a part of every layer, see model/shard.hpp

  // Group size: query heads that share one KV head (1 = MHA, num_attention_heads = MQA).
  [[nodiscard]] int group_size() const { return num_attention_heads / num_key_value_heads; }
  // What the checkpoint stores the layers' matrices in.
  [[nodiscard]] WeightFormat layer_format() const { return quantization.value_or(WeightFormat{dtype, 0}); }
  // What lm_head is in when the layers' matrices are in `layers`.
  [[nodiscard]] WeightFormat head_format(WeightFormat layers) const {
    return quantized_lm_head ? layers : WeightFormat{dtype, 0};
  }
  [[nodiscard]] int query_width() const { return num_attention_heads * head_dim; }
  [[nodiscard]] int kv_width() const { return num_key_value_heads * head_dim; }

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

// The same model with another number of KV heads: what-if studies of the group size.
[[nodiscard]] ModelShape with_kv_heads(ModelShape model, int num_key_value_heads);

// Everything that makes the shape unusable, one sentence each; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const ModelShape& model);

// Matrix weights of one layer, without norms: Q, K, V, O and the MLP.
[[nodiscard]] double layer_matrix_values(const ModelShape& model);

// All that is no matrix: norms and biases of the whole model.
[[nodiscard]] double vector_values(const ModelShape& model);

// Bytes of all weights: `format` for the layers' matrices, and for lm_head if it is quantized; the others are in
// model.dtype. A tied head is counted once.
[[nodiscard]] Bytes weight_footprint(const ModelShape& model, WeightFormat format);

// Bytes of K and V that one token leaves in all layers.
[[nodiscard]] Bytes kv_bytes_per_token(const ModelShape& model, Dtype kv_cache_dtype);

// Bytes that each running sequence holds besides its KV blocks: with kivi4 and kivi2, its newest `residual_tokens`
// tokens in F16, in all layers.
[[nodiscard]] Bytes kv_residual_bytes(const ModelShape& model, Dtype kv_cache_dtype, int residual_tokens);

}  // namespace dculab
