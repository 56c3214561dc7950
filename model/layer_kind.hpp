// What one decoder layer is made of. Layers of a model that are made alike are of one kind.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

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

enum class RopeScalingKind : std::uint8_t { none, linear, llama3, yarn, longrope };

// `rope_scaling` of config.json. Source of the rules: transformers, modeling_rope_utils.py.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;                 // llama3
  double high_freq_factor = 4.0;                // llama3
  int original_max_position_embeddings = 8192;  // llama3, yarn, longrope
  double beta_fast = 32;                        // yarn: turns within the original context that keep a frequency,
  double beta_slow = 1;                         // yarn: and those up to which it is divided by the factor
  bool truncate = true;                         // yarn: the bounds between are whole planes
  double attention_factor = 1.0;                // yarn, longrope: cosines and sines are multiplied by it
  std::vector<double> short_factor{};           // longrope: [rotary_dim / 2], up to the original context

  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

enum class PositionKind : std::uint8_t { rope, alibi, none };  // none: learned positions are added to the embedding

// Which values of a head make the planes that are rotated: value i with i + rotary_dim / 2, or neighbours.
enum class RopePairs : std::uint8_t { halves, neighbours };

// How attention learns where a token stands.
struct Position {
  PositionKind kind = PositionKind::rope;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling{};
  int rotary_dim = 0;  // values of a head that are rotated, its first; 0 = all
  RopePairs pairs = RopePairs::halves;
  double alibi_scale = 1.0;  // of the slopes: Falcon adds the bias before it divides by sqrt(head_dim)

  friend bool operator==(const Position&, const Position&) = default;
};

// RMS norms of the queries and keys of a token, before they are rotated.
enum class QkNorm : std::uint8_t {
  none,
  per_head,  // of each head on its own, with weights [head_dim]: Qwen3, Gemma 3
  whole,     // of all query heads together and all KV heads together, with weights [width]: OLMo 2
};

// Grouped-query attention, with MHA and MQA as its ends.
struct Gqa {
  Heads heads{};
  Position position{};
  int sliding_window = 0;  // a token sees itself and the window - 1 tokens before it; 0 = all
  bool qkv_bias = false;
  bool output_bias = false;
  QkNorm qk_norm = QkNorm::none;
  double query_scalar = 0;    // scores are divided by its root; 0 = head_dim: Gemma's query_pre_attn_scalar
  double logit_soft_cap = 0;  // scores become cap * tanh(score / cap); 0 = none: Gemma 2

  // Of scores, before the soft cap.
  [[nodiscard]] double score_scale() const { return 1.0 / std::sqrt(query_scalar > 0 ? query_scalar : heads.head_dim); }
  // Values of a head that are rotated.
  [[nodiscard]] int rotary_dim() const { return position.rotary_dim > 0 ? position.rotary_dim : heads.head_dim; }

  friend bool operator==(const Gqa&, const Gqa&) = default;
};

enum class MlpKind : std::uint8_t {
  gated,  // down(act(gate(x)) * up(x)): three matrices, Llama
  plain,  // down(act(up(x))): two matrices, the classic transformer
};

enum class ActivationKind : std::uint8_t { silu, gelu, gelu_tanh, relu };

[[nodiscard]] constexpr bool is_gelu(ActivationKind kind) {
  return kind == ActivationKind::gelu || kind == ActivationKind::gelu_tanh;
}

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

// How a router's logits become the weights of experts.
enum class ExpertScoring : std::uint8_t { softmax, sigmoid };

// Routed experts: each token goes to some of them. Each is a gated MLP.
struct Experts {
  int num_experts = 0;
  int num_experts_per_tok = 0;
  int intermediate_size = 0;  // of one
  ActivationKind activation = ActivationKind::silu;
  ExpertScoring scoring = ExpertScoring::softmax;
  bool normalized = true;                  // the weights of a token's experts add up to 1
  double scaling = 1.0;                    // of those weights: routed_scaling_factor
  int num_groups = 1, groups_per_tok = 1;  // a token's experts are all of its best groups
  bool correction_bias = false;            // added to the scores when experts are chosen, not to their weights
  bool bias = false;                       // of router and experts
  bool shared_gate = false;                // what all tokens go through is weighted by a sigmoid

  friend bool operator==(const Experts&, const Experts&) = default;
};

// How attention and MLP of a layer follow one another.
enum class BlockKind : std::uint8_t {
  sequential,          // x += attention(norm1(x)); x += mlp(norm2(x))
  parallel,            // x += attention(norm1(x)) + mlp(norm1(x)): Falcon 7B
  parallel_two_norms,  // x += attention(norm1(x)) + mlp(norm2(x)): Falcon 40B
};

// Where the norms of attention and MLP stand.
enum class NormPlacement : std::uint8_t {
  pre,       // x += f(norm(x)): most models
  post,      // x += norm(f(x)): OLMo 2
  sandwich,  // x += norm(f(norm(x))): Gemma 2 and 3, GLM-4
};

struct LayerKind {
  Gqa attention{};
  Dense mlp{};  // for all tokens; beside routed experts the shared ones, of width 0 where there are none
  std::optional<Experts> experts{};  // a mixture of experts
  BlockKind block = BlockKind::sequential;
  NormPlacement norms = NormPlacement::pre;  // of a sequential block; the others have pre

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

}  // namespace dculab
