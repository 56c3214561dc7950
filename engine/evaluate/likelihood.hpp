// What a row of logits says about the next token, and how far two rows lie apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.hpp"

namespace dculab::engine {

// Each sums in double precision. Preconditions: `logits` is not empty, `token` is one of its indices.

// log softmax(logits)[token]
[[nodiscard]] double log_probability(std::span<const float> logits, TokenId token);

// log softmax(logits), written to `out` of the same size.
void log_softmax(std::span<const float> logits, std::span<float> out);

// KL(p || q) = sum p (log p - log q) in nats, with log p = `reference` and q = softmax(logits). Summed as
// p (log p - log q) - p + q, which is the same where p sums to 1 and never negative where log p is rounded to F32.
[[nodiscard]] double kl_divergence(std::span<const float> reference, std::span<const float> logits);

// How far a model's predictions lie from a reference model's, over a number of tokens.
struct Agreement {
  std::int64_t num_tokens = 0;
  std::int64_t same_top1 = 0;  // predictions whose likeliest token is the reference's
  double kl_sum = 0;           // nats

  void add(std::span<const float> reference, std::span<const float> logits);

  [[nodiscard]] double mean_kl() const { return kl_sum / static_cast<double>(num_tokens); }
  [[nodiscard]] double top1() const { return static_cast<double>(same_top1) / static_cast<double>(num_tokens); }
};

}  // namespace dculab::engine
