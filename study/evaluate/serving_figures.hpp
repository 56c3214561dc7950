// What a serving run comes to, by the names that objectives have.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/serving_metrics.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::study {

// Quantiles of a latency that have names.
inline constexpr std::array<std::pair<const char*, double>, 3> kPercentiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}};

// By config::metrics(): "ttft_p90" in seconds, "requests_per_second", ... Those of latencies that no request has are
// absent.
[[nodiscard]] std::map<std::string, double> serving_figures(const ServingMetrics& metrics);

// The same, and how many steps and output tokens they took.
[[nodiscard]] std::map<std::string, double> compared_figures(const ServingMetrics& metrics, std::int64_t num_steps);

// The same of a simulated run, with what is counted for each device and what tokens cost as far as the machine says it.
[[nodiscard]] std::map<std::string, double> run_figures(const sim::SimulatedServer& server, const sim::ServingRun& run);

// The figure of a server with two sets of KV heads: how many requests the smaller set served.
inline constexpr const char* kFewHeadsRequests = "requests_with_few_heads";

}  // namespace dculab::study
