// How a report says which figure of a machine would change its answer.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "sim/study/sensitivity.hpp"

namespace dculab::cli {

// Asks `question` on changed machines; adds the table, returns the JSON. `metric`: what Answer::figure is.
[[nodiscard]] Json add_sensitivity(const sim::Machine& machine, const sim::Question& question, double within,
                                   const std::string& metric, Report& report,
                                   const sim::SensitivityOptions& options = {});

}  // namespace dculab::cli
