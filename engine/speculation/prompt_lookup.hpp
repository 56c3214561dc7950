// Drafts what followed the last tokens of a sequence where they stood before in it: n-grams, or prompt look-up
// (Saxena 2023). Costs nothing, and helps where a text repeats its prompt.
#pragma once

#include <span>
#include <vector>

#include "core/drafter.hpp"
#include "core/speculative_config.hpp"

namespace dculab::engine {

// Up to `most` tokens that followed the longest suffix of `tokens`, of `shortest` to `longest` tokens, that stands in
// them before; of several places the first, as vLLM takes it (vllm/v1/spec_decode/ngram_proposer.py). Empty when there
// is none. The place may overlap the suffix itself. Preconditions: 1 <= shortest <= longest.
[[nodiscard]] std::span<const TokenId> find_continuation(std::span<const TokenId> tokens, int shortest, int longest,
                                                         int most);

class PromptLookup final : public Drafter {
 public:
  explicit PromptLookup(const SpeculativeConfig& config)
      : shortest_(config.prompt_lookup_min), longest_(config.prompt_lookup_max) {}

  [[nodiscard]] Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) override;

 private:
  int shortest_, longest_;
};

}  // namespace dculab::engine
