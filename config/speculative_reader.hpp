// Reads engine.speculative_config: with what drafts, how many tokens, and how often they are accepted. Keys that vLLM's
// speculative_config has carry its names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "core/dtype.hpp"
#include "core/speculative_config.hpp"
#include "sim/speculation/acceptance.hpp"

namespace dculab::config {

// What a simulation needs to know beside SpeculativeConfig.
struct SpeculationChoice {
  std::string model;                    // that drafts: a folder with config.json, or a name under scenarios/models
  std::optional<WeightFormat> weights;  // its; absent: its checkpoint's own
  sim::Acceptance acceptance;
  std::string trace;  // a file whose counts are the acceptance
};

// The map of engine.speculative_config, where it is there. num_speculative_tokens: 0 drafts nothing.
void read_speculative_config(MapReader reader, SpeculativeConfig& config, SpeculationChoice& choice);

// Its keys.
[[nodiscard]] std::vector<FileKey> speculative_config_keys();

}  // namespace dculab::config
