// Which of the simulated points a scenario's objective prefers, and which block size.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "study/decide/drawn_requests.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::study {

// The one that the objective prefers, of those that meet its constraints and, where asked, are `among` those.
[[nodiscard]] std::optional<std::size_t> best(const std::vector<Simulation>& all, const config::Objective& objective,
                                              const std::function<bool(const Simulation&)>& among = {});

// Of those that meet the objective's constraints, the ones that no other beats in what `aims` name, by the first of
// them. A simulation without one of the figures is left out.
[[nodiscard]] std::vector<std::size_t> pareto_front(const std::vector<Simulation>& all,
                                                    const std::vector<config::Aim>& aims,
                                                    const config::Objective& objective);

// Of the points that are as `best` but for the block size, by the objective over several draws of the requests.
// Nothing where block sizes are not swept or no point meets the objective's limits.
[[nodiscard]] std::optional<DrawnVerdict> block_size_verdict(const std::vector<SimulatedPoint>& asked,
                                                             const std::vector<Simulation>& all, std::size_t best,
                                                             const config::Objective& objective, int threads);

}  // namespace dculab::study
