// The options that say how several tokens a step are drafted and verified, of every command that generates text.
#pragma once

#include <string>
#include <vector>

#include "core/speculative_config.hpp"
#include "engine/generate/open_model.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

struct SpeculationChoices {
  std::string model;           // a draft model: its folder, or a name under scenarios/models
  std::string medusa;          // heads: their folder
  bool mtp = false;            // the model's own layer for it
  bool prompt_lookup = false;  // n-grams
  int num_speculative_tokens = 0;
  std::string token_tree;
  std::string rejection_sample_method = "strict";
  SpeculativeConfig config{};  // its other figures

  // Of the draft model or the heads; empty where the model's own folder, or none, has what drafts.
  [[nodiscard]] const std::string& folder() const { return medusa.empty() ? model : medusa; }
  // Whether anything is drafted.
  [[nodiscard]] bool asked() const { return !model.empty() || !medusa.empty() || mtp || prompt_lookup; }
};

inline constexpr int kDefaultSpeculativeTokens = 4;
inline constexpr int kDefaultMtpTokens = 1;  // as DeepSeek serves its own

void add_speculation_options(CLI::App& command, SpeculationChoices& choices);

// Throws InputError for options that contradict each other, or do nothing.
[[nodiscard]] SpeculativeConfig speculative_config(const SpeculationChoices& choices);

// Makes a generator draft so. Throws as speculative_config().
void set_speculation(const SpeculationChoices& choices, engine::GeneratorOptions& options);

}  // namespace dculab::cli
