#include "study/search/search_metrics.hpp"

#include <algorithm>
#include <array>

namespace dculab::study {
namespace {

constexpr std::array<std::string_view, 4> kStepMetrics{"step_time", "tokens_per_second", "kv_bytes", "max_sequences"};
[[nodiscard]] std::vector<std::string_view> request_metrics() {
  std::vector<std::string_view> names;
  for (const config::Metric& metric : config::metrics())
    if (metric.name == "tokens_per_second" || std::ranges::find(kStepMetrics, metric.name) == kStepMetrics.end())
      names.push_back(metric.name);
  return names;
}

}  // namespace

std::span<const std::string_view> search_metrics(config::WorkloadKind workload) {
  static const std::vector<std::string_view> kOfRequests = request_metrics();
  return workload == config::WorkloadKind::serving ? std::span(kOfRequests)
                                                   : std::span<const std::string_view>(kStepMetrics);
}

std::vector<std::string> asked_metrics(const config::Scenario& scenario) {
  std::vector<std::string> asked{scenario.objective.metric};
  for (const config::Constraint& constraint : scenario.objective.subject_to) asked.push_back(constraint.metric);
  for (const config::Aim& aim : scenario.pareto) asked.push_back(aim.metric);
  for (const config::Condition& condition : scenario.constraints)
    for (const std::string& name : condition.names()) asked.push_back(name);
  return asked;
}

std::size_t metric_index(std::span<const std::string_view> metrics, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(metrics, name) - metrics.begin());
}

}  // namespace dculab::study
