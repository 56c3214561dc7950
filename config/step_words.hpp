// The words of scenarios and traces for what a step does, with which activations, and which tokens its cache keeps.
#pragma once

#include "config/map_reader.hpp"
#include "core/activation_mode.hpp"
#include "core/batch.hpp"
#include "core/kv_retention.hpp"

namespace dculab::config {

inline const Choices<Phase> kPhases{{"prefill", Phase::prefill}, {"decode", Phase::decode}};
inline const Choices<ActivationMode> kActivationModes{{"exact", ActivationMode::exact}, {"int8", ActivationMode::int8}};
inline const Choices<RetentionPolicy> kRetentionPolicies{{"all", RetentionPolicy::all},
                                                         {"window", RetentionPolicy::window},
                                                         {"sinks", RetentionPolicy::sinks},
                                                         {"heavy_hitters", RetentionPolicy::heavy_hitters}};

}  // namespace dculab::config
