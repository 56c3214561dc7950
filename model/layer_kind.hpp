// What one decoder layer is made of. Layers of a model that are made alike are of one kind.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/dtype.hpp"
#include "model/attention_kind.hpp"

namespace dculab {

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
enum class ExpertScoring : std::uint8_t { softmax, sigmoid, sqrt_softplus };

// What a device of an expert-parallel group has of a mixture, and gets: of the one with the most rows
// (model/expert_shard.hpp).
struct ExpertPart {
  int devices = 1;  // that share the routed experts
  int devices_per_node = 1;
  int attention_devices = 1;     // that have the same tokens: each sends its part of them
  double rows_per_token = 0;     // copies that a token goes to, all devices together
  std::vector<double> copies{};  // [copies that the device holds]: the probability with which a token goes to each
  double other_nodes = 0;        // that a token goes to beside its own, on average
  Dtype dispatch_dtype = Dtype::bf16;  // what is sent; what comes back has 16 bits, or is F32 too

  friend bool operator==(const ExpertPart&, const ExpertPart&) = default;
};

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
  bool by_token_id = false;  // a table says the experts of each token of the vocabulary: DeepSeek-V4's first layers
  bool own_norms = false;    // norms of their input and output, the router's and the shared MLP's output: Gemma 4
  std::optional<ExpertPart> part{};  // in expert parallelism: of a device; absent: it has all

  // Whose weights the device has.
  [[nodiscard]] int held() const { return part ? static_cast<int>(part->copies.size()) : num_experts; }

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
  Attention attention{};
  Dense mlp{};  // for all tokens; beside routed experts the shared ones, of width 0 where there are none
  std::optional<Experts> experts{};  // a mixture of experts
  BlockKind block = BlockKind::sequential;
  NormPlacement norms = NormPlacement::pre;  // of a sequential block; the others have pre

  // Precondition: it has grouped-query attention.
  [[nodiscard]] const Gqa& gqa() const { return std::get<Gqa>(attention); }
  [[nodiscard]] Gqa& gqa() { return std::get<Gqa>(attention); }
  [[nodiscard]] bool has_kv_heads() const { return std::holds_alternative<Gqa>(attention); }
  // Null where attention is of another kind.
  [[nodiscard]] const Mla* mla() const { return std::get_if<Mla>(&attention); }
  [[nodiscard]] const GatedDeltaNet* delta_net() const { return std::get_if<GatedDeltaNet>(&attention); }
  [[nodiscard]] const CompressedAttention* compressed() const { return std::get_if<CompressedAttention>(&attention); }
  // As the KV cache has them: latents and compressed entries are one KV head for all query heads; none where nothing
  // is cached.
  [[nodiscard]] std::optional<Heads> cached_heads() const {
    if (const Gqa* grouped = std::get_if<Gqa>(&attention)) return grouped->heads;
    if (const Mla* latent = mla()) return Heads{latent->num_attention_heads, 1, latent->latent_width()};
    if (const CompressedAttention* entries = compressed())
      return Heads{entries->num_attention_heads, 1, entries->head_dim};
    return std::nullopt;
  }

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// What of a layer is rotated, and by which angles.
struct Rotation {
  Position position{};
  int rotary_dim = 0;  // values of a head; 0: the layer has no heads

  explicit Rotation(const Gqa& attention) : position(attention.position), rotary_dim(attention.rotary_dim()) {}
  explicit Rotation(const Mla& attention) : position(attention.position), rotary_dim(attention.qk_rope_head_dim) {}
  explicit Rotation(const GatedDeltaNet& /*net*/) {}
  explicit Rotation(const CompressedAttention& /*attention*/) {}  // priced, not run
  explicit Rotation(const LayerKind& kind)
      : Rotation(std::visit([](const auto& attention) { return Rotation(attention); }, kind.attention)) {}
};

}  // namespace dculab
