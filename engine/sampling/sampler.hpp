// The next token, drawn from a row of logits: greedy, or by temperature, top-k and top-p.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/request.hpp"

namespace dculab::engine {

inline constexpr const char* kPredictionsNotFinite =
    "the model's predictions are NaN or infinite: its weights are damaged, or too large for its caches";

// Everything that makes the parameters unusable, one sentence each; empty when they are sound.
[[nodiscard]] std::vector<std::string> problems(const SamplingParams& params);

// Uniform in [0, 1), a pure function of seed and counter: no generator is carried along, so what a request draws does
// not depend on who else is in the batch. SplitMix64 (Steele, Lea, Flood 2014) of both.
[[nodiscard]] double uniform(std::uint64_t seed, std::uint64_t counter);

class Sampler {
 public:
  // `position` is the new token's place in its sequence: the counter of its random number. Among equal logits the
  // lower token id comes first. Temperature is applied first, then top_k, then top_p, as in Hugging Face transformers.
  // Throws InputError for logits that are not finite.
  [[nodiscard]] TokenId sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position);

 private:
  struct Candidate {
    TokenId token = 0;
    float logit = 0;
    double weight = 0;  // exp((logit - largest) / temperature)
  };
  void rank_candidates(std::span<const float> logits, const SamplingParams& params);
  void keep_nucleus(double top_p);

  std::vector<Candidate> candidates_;
};

}  // namespace dculab::engine
