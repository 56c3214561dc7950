// Which block size a simulated sweep chooses, where it has several.
#pragma once

#include <optional>
#include <vector>

#include "study/decide/drawn_requests.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::study {

// Of the points that are as `best` but for the block size, by the objective over several draws of the requests.
// Nothing where block sizes are not swept or no point meets the objective's limits.
[[nodiscard]] std::optional<DrawnVerdict> block_size_verdict(const std::vector<SimulatedPoint>& asked,
                                                             const std::vector<Simulation>& all, std::size_t best,
                                                             const config::Objective& objective, int threads);

}  // namespace dculab::study
