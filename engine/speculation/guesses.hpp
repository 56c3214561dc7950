// The guesses for one place of a draft, from the logits of whoever drafts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/draft_tree.hpp"
#include "core/request.hpp"
#include "engine/sampling/token_distribution.hpp"

namespace dculab::engine {

class Guesses {
 public:
  // Adds a child of `parent` (an index of `tree` or kRoot) for each of `ranks`, ascending, that predicts the token at
  // `position`. At temperature 0 these are the likeliest tokens of that rank. Otherwise tokens are drawn one after the
  // other, none twice, from the distribution that `params` make of the logits, which is recorded; there may be fewer of
  // them than asked for. What is drawn depends on the request's seed, the position and how many were drawn before.
  // Returns how many were added. Throws InputError for logits that are not finite.
  int add(DraftTree& tree, int parent, std::span<const int> ranks, std::span<const float> logits,
          const SamplingParams& params, std::uint64_t position);

 private:
  int add_likeliest(DraftTree& tree, int parent, std::span<const int> ranks, std::span<const float> logits);
  int draw(DraftTree& tree, int parent, std::span<const int> ranks, const SamplingParams& params,
           std::uint64_t position);

  TokenDistribution distribution_;
  std::vector<double> left_;    // of the distribution, without what was drawn. [vocab_size]
  std::vector<float> row_;      // what is recorded. [vocab_size]
  std::vector<TokenId> order_;  // [vocab_size]
};

}  // namespace dculab::engine
