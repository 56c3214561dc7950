// The next token, drawn from a row of logits: greedy, or by temperature, top-k and top-p.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/request.hpp"
#include "engine/sampling/token_distribution.hpp"

namespace dculab::engine {

// Everything that makes the parameters unusable, one sentence each; empty when they are sound.
[[nodiscard]] std::vector<std::string> problems(const SamplingParams& params);

// Uniform in [0, 1), a pure function of seed and counter: no generator is carried along, so what a request draws does
// not depend on who else is in the batch. SplitMix64 (Steele, Lea, Flood 2014) of both.
[[nodiscard]] double uniform(std::uint64_t seed, std::uint64_t counter);

// What random numbers of a request are for. Those of one stream say nothing about those of another.
enum class RandomStream : std::uint8_t {
  token,       // the model's own choice at a position: uniform(seed, position)
  draft,       // a guess for a position
  acceptance,  // whether a guess is taken
  residual,    // the model's choice where all guesses were rejected
};

// Of the guess of `rank` for a position; 0 where there is one number for a position.
[[nodiscard]] double uniform(std::uint64_t seed, RandomStream stream, std::uint64_t position, int rank = 0);

class Sampler {
 public:
  // `position` is the new token's place in its sequence: the counter of its random number. Draws from
  // TokenDistribution, or takes the likeliest token at temperature 0. Throws InputError for logits that are not finite.
  [[nodiscard]] TokenId sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position);

 private:
  TokenDistribution distribution_;
};

}  // namespace dculab::engine
