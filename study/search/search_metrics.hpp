// What a search can ask of a point: the metrics of a step or of served requests, by the names that objectives have.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/scenario/asked_metrics.hpp"

namespace dculab::study {

// In the order of a point's figures: s, 1/s, B or a number. Where workloads are served, config::metrics() but for those
// of a step.
[[nodiscard]] std::span<const std::string_view> search_metrics(config::WorkloadKind workload);

// metrics.size(): none of them.
[[nodiscard]] std::size_t metric_index(std::span<const std::string_view> metrics, std::string_view name);

}  // namespace dculab::study
