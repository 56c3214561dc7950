// How several tokens a step are drafted and verified. Names are those of vLLM's speculative_config where it has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/draft_tree.hpp"

namespace dculab {

enum class SpeculativeMethod : std::uint8_t {
  none,
  draft_model,  // a smaller model of the same vocabulary
  ngram,        // prompt look-up: what followed the last tokens where they stood before
  medusa,       // heads on the model's last hidden state
  mtp,          // DeepSeek's multi-token prediction: a layer of the checkpoint, run num_speculative_tokens times
};

// As scenarios write it: "draft_model", "ngram", "medusa", "mtp".
[[nodiscard]] std::string_view name(SpeculativeMethod method);

// How a drafted token is accepted. At temperature 0 all but synthetic are the model's own choice.
enum class RejectionSampleMethod : std::uint8_t {
  strict,     // exact: the text is distributed as the model's own (Leviathan et al. 2023; for trees SpecInfer's rule)
  typical,    // probable enough under the model: min(posterior_threshold, posterior_alpha * exp(-entropy)), Medusa's
  synthetic,  // drawn with given rates, whatever the tokens are: for measurements
};

[[nodiscard]] std::string_view name(RejectionSampleMethod method);
[[nodiscard]] std::optional<RejectionSampleMethod> parse_rejection_sample_method(std::string_view text);

struct SpeculativeConfig {
  SpeculativeMethod method = SpeculativeMethod::none;
  // What is drafted for each sequence, at most; num_speculative_tokens is its depth.
  DraftShape shape{};
  int prompt_lookup_min = 1, prompt_lookup_max = 4;  // ngram: last tokens that are looked up, the most first
  RejectionSampleMethod rejection_sample_method = RejectionSampleMethod::strict;
  double posterior_threshold = 0.09, posterior_alpha = 0.3;  // typical; vLLM's defaults
  // synthetic: of the place at each depth, given that all before it were accepted; the last stands for deeper ones.
  std::vector<double> synthetic_acceptance_rates{};

  [[nodiscard]] bool enabled() const { return method != SpeculativeMethod::none; }
  [[nodiscard]] int num_speculative_tokens() const { return shape.depth(); }

  friend bool operator==(const SpeculativeConfig&, const SpeculativeConfig&) = default;
};

// Everything that makes the configuration unusable, one sentence each; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const SpeculativeConfig& config);

}  // namespace dculab
