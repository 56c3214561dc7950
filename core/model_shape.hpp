// The shape of a decoder-only transformer: all that is needed to count its work.
//
// Field names are those of a Hugging Face `config.json`, so any Hub model can be studied from that one file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"

namespace dculab {

enum class MlpKind : std::uint8_t {
  gated,  // down(silu(gate(x)) * up(x)): three matrices, Llama
  plain,  // down(act(up(x))): two matrices, the classic transformer
};

enum class RopeScalingKind : std::uint8_t { none, linear, llama3 };

// `rope_scaling` of config.json. Source of the llama3 rule: transformers, modeling_rope_utils.py.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;                 // llama3 only
  double high_freq_factor = 4.0;                // llama3 only
  int original_max_position_embeddings = 8192;  // llama3 only
};

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
  Dtype dtype = Dtype::f16;  // the checkpoint's own
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling{};

  // Group size: query heads that share one KV head (1 = MHA, num_attention_heads = MQA).
  [[nodiscard]] int group_size() const { return num_attention_heads / num_key_value_heads; }
  [[nodiscard]] int query_width() const { return num_attention_heads * head_dim; }
  [[nodiscard]] int kv_width() const { return num_key_value_heads * head_dim; }
};

// The same model with another number of KV heads: what-if studies of the group size.
[[nodiscard]] ModelShape with_kv_heads(ModelShape model, int num_key_value_heads);

// Everything that makes the shape unusable, one sentence each; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const ModelShape& model);

// Matrix weights of one layer, without norms: Q, K, V, O and the MLP.
[[nodiscard]] double layer_matrix_values(const ModelShape& model);

// Bytes of all weights: `format` for the layers' matrices; embedding, head and norms stay in model.dtype.
// A tied head is counted once.
[[nodiscard]] Bytes weight_footprint(const ModelShape& model, WeightFormat format);

// Bytes of K and V that one token leaves in all layers.
[[nodiscard]] Bytes kv_bytes_per_token(const ModelShape& model, Dtype kv_cache_dtype);

}  // namespace dculab
