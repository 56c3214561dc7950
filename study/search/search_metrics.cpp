#include "study/search/search_metrics.hpp"

#include <algorithm>
#include <array>

namespace dculab::study {
namespace {

constexpr std::array<std::string_view, 7> kStepMetrics{"step_time",
                                                       "tokens_per_second",
                                                       "kv_bytes",
                                                       "max_sequences",
                                                       "tokens_per_second_per_gpu",
                                                       "joules_per_output_token",
                                                       "usd_per_million_tokens"};
constexpr std::array<std::string_view, 3> kOfStepsAlone{"step_time", "kv_bytes", "max_sequences"};

[[nodiscard]] std::vector<std::string_view> request_metrics() {
  std::vector<std::string_view> names;
  for (const config::Metric& metric : config::metrics())
    if (std::ranges::find(kOfStepsAlone, metric.name) == kOfStepsAlone.end()) names.push_back(metric.name);
  return names;
}

}  // namespace

std::span<const std::string_view> search_metrics(config::WorkloadKind workload) {
  static const std::vector<std::string_view> kOfRequests = request_metrics();
  return workload == config::WorkloadKind::serving ? std::span(kOfRequests)
                                                   : std::span<const std::string_view>(kStepMetrics);
}

std::size_t metric_index(std::span<const std::string_view> metrics, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(metrics, name) - metrics.begin());
}

}  // namespace dculab::study
