// How the tokens of a layer see each other: grouped-query attention, attention over latents or over compressed
// entries, or a recurrent state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace dculab {

// Query heads and the KV heads that they share: MHA where each has its own, MQA where all share one, GQA between.
struct Heads {
  int num_attention_heads = 0;  // query heads
  int num_key_value_heads = 0;  // KV heads
  int head_dim = 0;

  // Query heads that share one KV head; their mean, rounded down, where groups differ (Gqa::group_sizes).
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

enum class PositionKind : std::uint8_t { rope, alibi, none };  // none: or learned ones are added to the embedding

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
  // [query heads of the whole model]: the head whose slope each has, where heads have changed places; empty: its own.
  std::vector<int> alibi_heads{};

  friend bool operator==(const Position&, const Position&) = default;
};

// RMS norms of the queries and keys of a token, before they are rotated.
enum class QkNorm : std::uint8_t {
  none,
  per_head,    // of each head on its own, with weights [head_dim]: Qwen3, Gemma 3
  unweighted,  // of each head, without weights: Llama 4
  whole,       // of all query heads together and all KV heads together, with weights [width]: OLMo 2
};

// Grouped-query attention, with MHA and MQA as its ends.
struct Gqa {
  Heads heads{};
  std::vector<int> group_sizes{};  // [KV heads]: query heads of each, in order, where they differ; empty: group_size()
  Position position{};
  int sliding_window = 0;  // a token sees itself and the window - 1 tokens before it; 0 = all
  bool in_chunks = false;  // a token sees those of its own chunk of sliding_window tokens: Llama 4
  bool qkv_bias = false;
  bool output_bias = false;
  QkNorm qk_norm = QkNorm::none;
  double query_scalar = 0;    // scores are divided by its root; 0 = head_dim: Gemma's query_pre_attn_scalar
  double logit_soft_cap = 0;  // scores become cap * tanh(score / cap); 0 = none: Gemma 2
  bool sinks = false;         // each query head has a score beside those of tokens, whose weight is lost: gpt-oss
  bool output_gate = false;   // the output is multiplied by the sigmoid of a gate, which the queries' matrix gives too
  bool shares_kv = false;     // K and V are those of an earlier layer, ModelShape::kv_sources: cross-layer attention
  bool k_eq_v = false;        // V is what K's projection gives, before K's norm: Gemma 4
  bool v_norm = false;        // an RMS norm of each head of V, without weights: Gemma 4

  // `sizes`: query heads of each KV head, in order.
  void set_groups(std::vector<int> sizes) {
    heads.num_key_value_heads = static_cast<int>(sizes.size());
    const bool equal = std::ranges::all_of(sizes, [&](int size) { return size == sizes.front(); });
    group_sizes = equal ? std::vector<int>() : std::move(sizes);
  }

  // Matrices that give K and V.
  [[nodiscard]] int kv_projections() const { return shares_kv ? 0 : k_eq_v ? 1 : 2; }
  // Values of a token that its own projections give: Q, its gate, K and V.
  [[nodiscard]] int projected_width() const {
    return (output_gate ? 2 : 1) * heads.query_width() + kv_projections() * heads.kv_width();
  }
  // Of scores, before the soft cap.
  [[nodiscard]] double score_scale() const { return 1.0 / std::sqrt(query_scalar > 0 ? query_scalar : heads.head_dim); }
  // Values of a head that are rotated.
  [[nodiscard]] int rotary_dim() const { return position.rotary_dim > 0 ? position.rotary_dim : heads.head_dim; }

  friend bool operator==(const Gqa&, const Gqa&) = default;
};

// Multi-head latent attention. A token leaves one latent for all heads in the cache, and one key that is rotated.
// Prefill expands latents into the keys and values of every head; decode moves the up-projections of K into the query
// and those of V behind attention, which then runs over latents as over one KV head of all query heads.
// Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
struct Mla {
  int num_attention_heads = 0;
  int q_lora_rank = 0;   // of the queries' own latent; 0 = they are projected from the hidden state
  int kv_lora_rank = 0;  // values of a token's latent
  int qk_nope_head_dim = 0, qk_rope_head_dim = 0;  // of a query's and key's head: not rotated, rotated
  int v_head_dim = 0;
  Position position{};
  bool bias = false;          // of the projections that begin from the hidden state, and of o_proj
  double score_factor = 1.0;  // scores are multiplied by it, besides 1 / sqrt(qk_head_dim): YaRN's magnitude squared

  [[nodiscard]] int qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  // Values that a token leaves in the cache.
  [[nodiscard]] int latent_width() const { return kv_lora_rank + qk_rope_head_dim; }
  [[nodiscard]] int query_width() const { return num_attention_heads * qk_head_dim(); }
  [[nodiscard]] int value_width() const { return num_attention_heads * v_head_dim; }
  // Of K without its rotated part, and of V, of all heads: what a latent expands to.
  [[nodiscard]] int expanded_width() const { return num_attention_heads * (qk_nope_head_dim + v_head_dim); }
  [[nodiscard]] double score_scale() const { return score_factor / std::sqrt(qk_head_dim()); }

  friend bool operator==(const Mla&, const Mla&) = default;
};

inline constexpr double kDeltaChunk = 64;  // tokens of a gated delta net's prefill that are multiplied together

// A recurrence in place of attention: a state of fixed size for each sequence, which each token decays, corrects and
// reads. Priced, not run.
// Source: Gated Delta Networks, arXiv:2412.06464; transformers, models/qwen3_next/modeling_qwen3_next.py.
struct GatedDeltaNet {
  int num_key_heads = 0, num_value_heads = 0;
  int key_head_dim = 0, value_head_dim = 0;
  int conv_kernel = 0;  // tokens that the causal convolution of Q, K and V sees

  [[nodiscard]] int key_width() const { return num_key_heads * key_head_dim; }
  [[nodiscard]] int value_width() const { return num_value_heads * value_head_dim; }
  // Values that go through the convolution: Q, K and V.
  [[nodiscard]] int conv_width() const { return 2 * key_width() + value_width(); }
  // Values of a sequence's state, in F32: a matrix [key_head_dim, value_head_dim] for each value head.
  [[nodiscard]] double state_values() const {
    return static_cast<double>(num_value_heads) * key_head_dim * value_head_dim;
  }

  friend bool operator==(const GatedDeltaNet&, const GatedDeltaNet&) = default;
};

// DeepSeek-V4's attention: one key for all query heads, which is its value too. A token sees the tokens of a window,
// and of all tokens before it compressed entries, one for every `compress_ratio` tokens. Where there is an indexer, it
// sees the `index_topk` entries alone whose own small keys score best. Priced, not run.
// Source: transformers, models/deepseek_v4/modeling_deepseek_v4.py.
struct CompressedAttention {
  int num_attention_heads = 0;
  int head_dim = 0;
  int qk_rope_head_dim = 0;  // values of a head that are rotated, its last
  int q_lora_rank = 0;       // of the queries' latent
  int o_groups = 0;          // of heads, each of which o_a_proj turns into a latent;
  int o_lora_rank = 0;       // o_b_proj makes the output from the latents of all groups
  int sliding_window = 0;    // a token sees itself and the window - 1 tokens before it
  int compress_ratio = 0;    // tokens of an entry; 0 = no entries: the window alone
  int index_n_heads = 0;     // of the indexer; 0 = none: a token sees all entries before it
  int index_head_dim = 0;
  int index_topk = 0;
  Position position{};

  [[nodiscard]] bool has_indexer() const { return index_n_heads > 0; }
  [[nodiscard]] int query_width() const { return num_attention_heads * head_dim; }
  [[nodiscard]] int index_query_width() const { return index_n_heads * index_head_dim; }
  [[nodiscard]] int output_latents() const { return o_groups * o_lora_rank; }
  // With an indexer an entry is made of its own tokens and of the entry's before: each token gives values for both.
  [[nodiscard]] int series() const { return has_indexer() ? 2 : 1; }
  // Values of an entry: the key, and the indexer's.
  [[nodiscard]] int entry_width() const {
    return compress_ratio == 0 ? 0 : head_dim + (has_indexer() ? index_head_dim : 0);
  }
  // Values of a token that entries are made from, as many of them as weights of the others.
  [[nodiscard]] int compressor_width() const { return 2 * series() * entry_width(); }
  // Values that a sequence keeps of the tokens whose entry is not complete, and of the entry before.
  [[nodiscard]] double open_entry_values() const {
    return static_cast<double>(compress_ratio) * (compressor_width() + (series() - 1) * 2.0 * entry_width());
  }

  friend bool operator==(const CompressedAttention&, const CompressedAttention&) = default;
};

using Attention = std::variant<Gqa, Mla, GatedDeltaNet, CompressedAttention>;

}  // namespace dculab
