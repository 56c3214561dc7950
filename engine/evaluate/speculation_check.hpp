// What drafting changes: the speed, and at temperature 0 not a token.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/draft_counts.hpp"
#include "engine/generate/generator.hpp"

namespace dculab::engine {

struct SpeculationCheck {
  int num_texts = 0;
  int num_identical = 0;  // texts that are token for token those of the model alone
  std::int64_t num_tokens = 0;
  Seconds plain{}, drafted{};  // the fastest of the rounds; all texts at the same time
  DraftCounts drafts{};        // of the last round
  Seconds drafting{}, verifying{};

  [[nodiscard]] double plain_rate() const { return static_cast<double>(num_tokens) / plain.value(); }
  [[nodiscard]] double drafted_rate() const { return static_cast<double>(num_tokens) / drafted.value(); }
};

// Share of the work done, 0 to 1.
using CheckProgress = std::function<void(double share)>;

// Generates `max_tokens` after each prompt, likeliest tokens first, with and without drafts in turn. The generator
// drafts when it returns. Throws InputError for a prompt that cannot be served.
[[nodiscard]] SpeculationCheck check_speculation(Generator& generator, std::span<const std::string> prompts,
                                                 int max_tokens, const CheckProgress& progress = {});

// At most `count` pieces of `text`, of about `bytes` bytes, from all over it: whole words.
[[nodiscard]] std::vector<std::string> prompts_from(std::string_view text, int count, std::size_t bytes = 200);

}  // namespace dculab::engine
