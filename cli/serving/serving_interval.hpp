// Between which values the figures of a simulation lie, and what they rest on.
#pragma once

#include <string>

#include "cli/serving/simulation.hpp"

namespace dculab::cli {

// Simulates the point again with all steps as fast, and as slow, as they may be. The intervals hold the figures
// themselves too. Both at once, unless `threads` is 1.
void add_intervals(const config::SweepPoint& point, int threads, Simulation& simulation);

// "0.57 to 1.75 times their price at 90 % (priors: no traces of this machine, ...)"
[[nodiscard]] std::string trust_text(const sim::StepConfidence& trust);

// Precondition: has intervals.
[[nodiscard]] Table interval_table(const Simulation& simulation);

}  // namespace dculab::cli
