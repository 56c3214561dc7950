// Between which values the figures of a simulation lie, and what they rest on.
#pragma once

#include <map>
#include <string>

#include "study/evaluate/simulation.hpp"

namespace dculab::study {

using Intervals = std::map<std::string, sim::Range>;

// Serves the workload again with all steps as fast, and as slow, as `trust` says they may be; both at once, unless
// `threads` is 1. The intervals hold `figures`, those of steps as they are priced, too.
[[nodiscard]] Intervals serving_intervals(const sim::SimulatedServer& server, const RequestWorkload& workload,
                                          const ServiceLevel& objective, const sim::StepConfidence& trust,
                                          const std::map<std::string, double>& figures, int threads);

void add_intervals(const config::SweepPoint& point, int threads, Simulation& simulation);

}  // namespace dculab::study
