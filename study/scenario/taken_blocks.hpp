// Of a sweep over block sizes, those that the stack's kernels take.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

struct TakenPoints {
  std::vector<config::SweepPoint> points;
  std::vector<std::string> left_out;  // block sizes that no point has any more
};

// All points where block sizes are not swept, and where the kernels take none of them: whoever resolves a point then
// says why not.
[[nodiscard]] TakenPoints taken_points(const config::Scenario& scenario, const sim::Machine& machine);

}  // namespace dculab::study
