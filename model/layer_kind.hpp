// What one decoder layer is made of. Layers of a model that are made alike are of one kind.
#pragma once

#include <cstdint>

namespace dculab {

// Query heads and the KV heads that they share: MHA where each has its own, MQA where all share one, GQA between.
struct Heads {
  int num_attention_heads = 0;  // query heads
  int num_key_value_heads = 0;  // KV heads
  int head_dim = 0;

  // Query heads that share one KV head.
  [[nodiscard]] int group_size() const { return num_attention_heads / num_key_value_heads; }
  [[nodiscard]] int query_width() const { return num_attention_heads * head_dim; }
  [[nodiscard]] int kv_width() const { return num_key_value_heads * head_dim; }

  friend bool operator==(const Heads&, const Heads&) = default;
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

enum class PositionKind : std::uint8_t { rope, alibi };

// How attention learns where a token stands.
struct Position {
  PositionKind kind = PositionKind::rope;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling{};
  double alibi_scale = 1.0;  // of the slopes: Falcon adds the bias before it divides by sqrt(head_dim)

  friend bool operator==(const Position&, const Position&) = default;
};

// Grouped-query attention, with MHA and MQA as its ends.
struct Gqa {
  Heads heads{};
  Position position{};
  int sliding_window = 0;  // a token sees itself and the window - 1 tokens before it; 0 = all
  bool qkv_bias = false;
  bool output_bias = false;

  friend bool operator==(const Gqa&, const Gqa&) = default;
};

enum class MlpKind : std::uint8_t {
  gated,  // down(act(gate(x)) * up(x)): three matrices, Llama
  plain,  // down(act(up(x))): two matrices, the classic transformer
};

enum class ActivationKind : std::uint8_t { silu, gelu, gelu_tanh };

// One MLP for all tokens.
struct Dense {
  int intermediate_size = 0;
  MlpKind kind = MlpKind::gated;
  ActivationKind activation = ActivationKind::silu;
  bool bias = false;

  // Values of a token that go into the activation: gate and up, or up alone.
  [[nodiscard]] int up_width() const { return (kind == MlpKind::gated ? 2 : 1) * intermediate_size; }

  friend bool operator==(const Dense&, const Dense&) = default;
};

// How attention and MLP of a layer follow one another.
enum class BlockKind : std::uint8_t {
  sequential,          // x += attention(norm1(x)); x += mlp(norm2(x))
  parallel,            // x += attention(norm1(x)) + mlp(norm1(x)): Falcon 7B
  parallel_two_norms,  // x += attention(norm1(x)) + mlp(norm2(x)): Falcon 40B
};

struct LayerKind {
  Gqa attention{};
  Dense mlp{};
  BlockKind block = BlockKind::sequential;

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

}  // namespace dculab
