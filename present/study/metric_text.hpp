// How tables show metrics, and what their keys mean in JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/scenario_file.hpp"
#include "fields/field_list.hpp"

namespace dculab::present {

// "30.4 ms"; "-" where a point has no such figure, which is NaN.
[[nodiscard]] std::string metric_text(std::string_view metric, double figure);

// The head of a metric's column.
[[nodiscard]] std::string metric_title(std::string_view metric);

// Those whose columns tables show: all of a step, of served requests what the scenario asks about and some more.
[[nodiscard]] std::vector<std::size_t> shown_metrics(const config::Scenario& scenario);

// All that objectives may name, and those of a service with pools: figures in s, 1/s, B or a number.
[[nodiscard]] std::vector<DataKey> metric_keys();

}  // namespace dculab::present
