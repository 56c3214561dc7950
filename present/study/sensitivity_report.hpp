// How a report says which figure of a machine would change its answer.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "sim/study/sensitivity.hpp"

namespace dculab::present {

// Adds the table, returns the JSON. `choice`: the answer on the machine as it is; `within`: the largest factor by which
// figures were changed; `metric`: what Answer::figure is.
[[nodiscard]] Json add_sensitivity(const sim::Machine& machine, const std::string& choice,
                                   const std::vector<sim::Sensitivity>& figures, double within,
                                   const std::string& metric, Report& report);

}  // namespace dculab::present
