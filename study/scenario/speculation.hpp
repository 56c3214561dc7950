// From what a scenario says of drafts to what a simulation needs.
#pragma once

#include <optional>
#include <string>

#include "config/scenario_file.hpp"
#include "core/speculative_config.hpp"
#include "sim/speculation/draft_work.hpp"

namespace dculab::study {

// What drafts on this machine's engine, where no scenario says so.
struct DraftChoice {
  SpeculativeConfig config;
  std::string model;  // the folder of the draft model or of the heads, or a name; empty: the model's own, or none
};

// Whether the scenario, or a point of its sweep, drafts tokens.
[[nodiscard]] bool drafts(const config::Scenario& scenario);

// The draft model and the acceptance; nothing where the scenario drafts nothing. Throws InputError.
[[nodiscard]] std::optional<sim::Speculation> resolve_speculation(const config::Scenario& scenario);

// Throws InputError, with the place of engine.speculative_config, for what keeps `model` from being drafted for.
void require_drafts(const config::Scenario& scenario, const std::optional<sim::Speculation>& speculation,
                    const ModelShape& model, const EngineOptions& options, const sim::Machine& machine);

// Throws InputError where the scenario drafts and `what` has no place for it: "a search over steps".
void refuse_drafts(const config::Scenario& scenario, const std::string& what);

}  // namespace dculab::study
