// Ways to run a golden model's prompts, and how far logits may be from those of transformers.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/stepper.hpp"

namespace dculab::engine {

inline constexpr float kTolerance = 1e-4F;

inline std::vector<TokenId> first(const std::vector<TokenId>& tokens, std::size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

inline float largest_difference(const Logits& actual, const float* expected) {
  float largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i])) return INFINITY;
    largest = std::max(largest, std::fabs(actual[i] - expected[i]));
  }
  return largest;
}

// The prompt in chunks of at most `chunk` tokens; the logits after the last one.
inline Logits prefill_in_chunks(Stepper& stepper, SequenceId sequence, const std::vector<TokenId>& prompt,
                                std::size_t chunk) {
  Logits logits;
  for (std::size_t begin = 0; begin < prompt.size(); begin += chunk) {
    const std::size_t end = std::min(begin + chunk, prompt.size());
    logits = stepper.step({{sequence,
                            Phase::prefill,
                            {prompt.begin() + static_cast<std::ptrdiff_t>(begin),
                             prompt.begin() + static_cast<std::ptrdiff_t>(end)}}})[0];
  }
  return logits;
}

// All prompts prefilled in one ragged step, then decoded together greedily. Returns all logits in order.
inline std::vector<Logits> decode_together(Stepper& stepper, const std::vector<GoldenPrompt>& prompts) {
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    feeds.push_back({static_cast<SequenceId>(i), Phase::prefill, prompts[i].tokens});
  std::vector<Logits> all;
  for (std::size_t token = 0; token < prompts[0].greedy.size(); ++token) {
    const std::vector<Logits> rows = stepper.step(feeds);
    for (std::size_t i = 0; i < prompts.size(); ++i)
      feeds[i] = {static_cast<SequenceId>(i), Phase::decode, {best_token(rows[i])}};
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace dculab::engine
