// The second set of KV heads that a scenario serves with (engine.groups_by_load).
#pragma once

#include <optional>

#include "config/scenario_file.hpp"
#include "model/few_heads.hpp"

namespace dculab::study {

// Of the scenario's `model`; nothing where it serves with one set. Throws InputError for heads that do not go with it.
[[nodiscard]] std::optional<FewHeads> resolve_few_heads(const config::Scenario& scenario, const ModelShape& model,
                                                        const EngineOptions& options);

// Throws InputError where the scenario asks for groups by load, and `what` does not serve requests over time.
void refuse_groups_by_load(const config::Scenario& scenario, const std::string& what);

}  // namespace dculab::study
