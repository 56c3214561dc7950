// How tables show the metrics of a search.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/scenario_file.hpp"

namespace dculab::present {

// "30.4 ms"; "-" where a point has no such figure, which is NaN.
[[nodiscard]] std::string metric_text(std::string_view metric, double figure);

// The head of a metric's column.
[[nodiscard]] std::string metric_title(std::string_view metric);

// Those whose columns tables show: all of a step, of served requests what the scenario asks about and some more.
[[nodiscard]] std::vector<std::size_t> shown_metrics(const config::Scenario& scenario);

}  // namespace dculab::present
