// What the next token is drawn from: a row of logits under a request's temperature, top-k and top-p.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/request.hpp"

namespace dculab::engine {

inline constexpr const char* kPredictionsNotFinite =
    "the model's predictions are NaN or infinite: its weights are damaged, or too large for its caches";

// Throws InputError for logits that are not finite.
void require_finite(std::span<const float> logits);

// The likeliest token, the first among equals.
[[nodiscard]] TokenId likeliest(std::span<const float> logits);

// The token at the share `uniform` of all weight, 0 <= uniform < 1; -1 where no token has any. [vocab_size]
[[nodiscard]] TokenId draw_from(std::span<const double> weights, double uniform);

// The tokens that can be drawn, with weights. Temperature is applied first, then top_k, then top_p, as in Hugging Face
// transformers; among equal logits the lower token id comes first. Keeps its memory from row to row.
class TokenDistribution {
 public:
  // Throws InputError for logits that are not finite. Precondition: params.temperature > 0.
  void assign(std::span<const float> logits, const SamplingParams& params);

  // The token at the share `uniform` of all weight, 0 <= uniform < 1.
  [[nodiscard]] TokenId draw(double uniform) const;

  // Of every token, 0 of those that cannot be drawn; the sum is 1. [vocab_size of the row]
  void probabilities(std::vector<double>& of_tokens) const;

 private:
  struct Candidate {
    TokenId token = 0;
    float logit = 0;
    double weight = 0;  // exp((logit - largest) / temperature)
  };
  void rank_candidates(std::span<const float> logits, const SamplingParams& params);
  void keep_nucleus(double wanted);

  std::vector<Candidate> candidates_;  // best first where top_k or top_p needs an order; else by token
  double total_ = 0;                   // of their weights
  std::size_t vocab_size_ = 0;
};

}  // namespace dculab::engine
