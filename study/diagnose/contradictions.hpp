// Measurements that cannot all be of one server.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "study/diagnose/step_facts.hpp"

namespace dculab::study {

// Throws InputError with both values where one batch, context and phase was measured twice, farther apart than noise.
// A rate of several sequences may be slower than their TPOT: fewer of them may have run at a time.
void refuse_contradictions(std::span<const MeasuredStep> steps);

// A warning each where a measured time falls with context, and with batch, though the predicted one grows.
[[nodiscard]] std::vector<std::string> falling_times(std::span<const StepFacts> steps);

}  // namespace dculab::study
