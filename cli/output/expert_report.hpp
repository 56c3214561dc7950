// Which experts of a mixture the engine's tokens chose, as cells of a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "core/expert_histogram.hpp"

namespace dculab::cli {

// "experts/step", "hottest": distinct experts of a layer in a step, and the share of its choices that the most chosen
// gets, both on average over the layers.
[[nodiscard]] std::vector<std::string> expert_columns();

// Under those; dashes of a model without experts.
[[nodiscard]] std::vector<Cell> expert_cells(const ExpertHistogram& experts);

// A line that says what the columns mean.
[[nodiscard]] std::string expert_heading();

// The two figures, and the choices by layer and expert. Precondition: not empty.
[[nodiscard]] Json expert_json(const ExpertHistogram& experts);

}  // namespace dculab::cli
