// The words of scenarios and traces for what a step does, with which activations, and which tokens its cache keeps.
#pragma once

#include <array>

#include "config/map_reader.hpp"
#include "core/activation_mode.hpp"
#include "core/batch.hpp"
#include "core/kv_retention.hpp"

namespace dculab::config {

inline constexpr auto kPhases = std::to_array<Choice<Phase>>({{"prefill", Phase::prefill}, {"decode", Phase::decode}});
inline constexpr auto kActivationModes = std::to_array<Choice<ActivationMode>>({{"exact", ActivationMode::exact},
                                                                                {"int8", ActivationMode::int8},
                                                                                {"bf16", ActivationMode::bf16},
                                                                                {"fp8", ActivationMode::fp8}});
inline constexpr auto kRetentionPolicies =
    std::to_array<Choice<RetentionPolicy>>({{"all", RetentionPolicy::all},
                                            {"window", RetentionPolicy::window},
                                            {"sinks", RetentionPolicy::sinks},
                                            {"heavy_hitters", RetentionPolicy::heavy_hitters}});

}  // namespace dculab::config
