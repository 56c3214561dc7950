// How alike the KV heads of a layer are, and how much each of them matters, on calibration text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/regroup/head_groups.hpp"
#include "engine/regroup/head_moments.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// Of which vectors two KV heads are compared.
enum class ComparedHeads : std::uint8_t {
  key_value,  // their K, and their V: the mean of the two counts
  query,      // their query heads, in a row: "query heads" of Opt-GQA
  output,     // what these hand to o_proj, in a row: "output activation vectors" of Opt-GQA
};

// What of two heads' vectors is compared, over the same tokens t of the text. At one position RoPE turns the K of all
// heads by the same angles, and their queries, which changes none of them.
enum class HeadSimilarity : std::uint8_t {
  cosine,    // mean over t of a_t . b_t / (|a_t| |b_t|): direction alone
  norm,      // mean over t of min(|a_t|, |b_t|) / max(|a_t|, |b_t|): length alone
  distance,  // 1 - sum over t of |a_t - b_t|^2 / (2 * the mean over heads of sum over t of |a_t|^2): what a mean loses
  svd,       // svd_similarity: 1 - what the best shared head loses, as part of the mean over heads of all there is
};

// kv_width^2 values each of K and V in every layer, which only the SVD needs.
enum class SecondMoments : std::uint8_t { omit, collect };

// Filled token by token, from one thread.
class HeadStatistics {
 public:
  explicit HeadStatistics(const ModelShape& shape, SecondMoments moments = SecondMoments::omit);

  // Q, K and V of some tokens: [tokens, query_width + 2 * kv_width].
  void add_qkv(std::span<const float> qkv);

  // What the query heads hand to o_proj: [tokens, query_width].
  void add_attention(std::span<const float> attention);

  // Preconditions of both: add_qkv, add_attention were called with finite values. `svd` needs o_proj and moments.
  // svd is of K and V alone.
  [[nodiscard]] SimilarityMatrix similarity(HeadSimilarity kind, const kernels::WeightView& o_proj = {},
                                            ComparedHeads compared = ComparedHeads::key_value) const;
  // a . b of each two heads, summed over tokens.
  [[nodiscard]] SimilarityMatrix key_products() const { return products(sums_[kKeys]); }
  [[nodiscard]] SimilarityMatrix value_products() const { return products(sums_[kValues]); }
  // [num_key_value_heads] Root mean square, over tokens, of what the query heads of each KV head add to the residual
  // stream: |o_proj * attention|, where the columns of o_proj are [hidden_size, query_width].
  [[nodiscard]] std::vector<double> importance(const kernels::WeightView& o_proj) const;

  // Precondition: they were collected.
  [[nodiscard]] const HeadMoments& moments() const { return *moments_; }

  // False when a value was NaN or infinite: then the sums mean nothing.
  [[nodiscard]] bool is_finite() const;

 private:
  static constexpr std::size_t kKeys = 0, kValues = 1, kQueries = 2, kOutputs = 3;

  // [num_key_value_heads, num_key_value_heads], the lower triangle and the diagonal.
  struct PairSums {
    std::vector<double> dot, cosine, norm_ratio;
  };

  void add_heads(PairSums& sums, const float* heads, int width);  // [num_key_value_heads, width] of one token
  [[nodiscard]] SimilarityMatrix products(const PairSums& sums) const;
  [[nodiscard]] double similarity_of(const PairSums& sums, HeadSimilarity kind, int a, int b) const;
  [[nodiscard]] std::size_t index(int a, int b) const;

  ModelShape shape_;
  std::int64_t num_tokens_ = 0;
  std::array<PairSums, 4> sums_;       // of kKeys and so on
  std::vector<double> second_moment_;  // [num_attention_heads, head_dim, head_dim] of the attention output, summed
  std::optional<HeadMoments> moments_;
  std::vector<double> norms_;  // [num_key_value_heads] of the token being added
};

}  // namespace dculab::engine
