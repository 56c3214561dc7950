// What a serving run comes to, by the names that objectives have.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>

#include "core/serving_metrics.hpp"

namespace dculab::study {

// Quantiles of a latency that have names.
inline constexpr std::array<std::pair<const char*, double>, 3> kPercentiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}};

// By config::metrics(): "ttft_p90" in seconds, "requests_per_second", ... Those of latencies that no request has are
// absent.
[[nodiscard]] std::map<std::string, double> serving_figures(const ServingMetrics& metrics);

}  // namespace dculab::study
