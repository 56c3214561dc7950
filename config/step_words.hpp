// The words of scenarios and traces for what a step does, with which activations, and which tokens its cache keeps.
#pragma once

#include <array>

#include "config/map_reader.hpp"
#include "core/activation_mode.hpp"
#include "core/batch.hpp"
#include "core/kv/table.hpp"

namespace dculab::config {

inline constexpr auto kPhases = std::to_array<Choice<Phase>>({{"prefill", Phase::prefill}, {"decode", Phase::decode}});
inline constexpr auto kActivationModes = std::to_array<Choice<ActivationMode>>({{"exact", ActivationMode::exact},
                                                                                {"int8", ActivationMode::int8},
                                                                                {"bf16", ActivationMode::bf16},
                                                                                {"fp8", ActivationMode::fp8}});
inline constexpr auto kRetentionPolicies = [] {
  std::array<Choice<RetentionPolicy>, kKvPolicies.size()> choices{};
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = {kKvPolicies[i].name, kKvPolicies[i].policy};
  return choices;
}();

}  // namespace dculab::config
