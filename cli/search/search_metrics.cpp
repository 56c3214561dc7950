#include "cli/search/search_metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cli/output/output.hpp"
#include "config/unit_text.hpp"

namespace dculab::cli {
namespace {

constexpr std::array<std::string_view, 4> kStepMetrics{"step_time", "tokens_per_second", "kv_bytes", "max_sequences"};
constexpr std::array<std::pair<std::string_view, const char*>, 4> kStepTitles{
    {{"step_time", "step"},
     {"tokens_per_second", "tokens/s"},
     {"kv_bytes", "KV cache"},
     {"max_sequences", "sequences that fit"}}};
constexpr std::array<std::string_view, 5> kShownOfRequests{"output_tokens_per_second", "ttft_p50", "ttft_p99",
                                                           "tpot_p50", "tpot_p99"};

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

std::string metric_text(std::string_view metric, double figure) {
  if (std::isnan(figure)) return "-";
  const auto kind = std::ranges::find(config::metrics(), metric, &config::Metric::name)->kind;
  if (kind == config::MetricKind::time) return config::short_text(Seconds(figure));
  if (kind == config::MetricKind::size) return config::short_text(Bytes(figure));
  return metric == "max_sequences" ? exact_number(figure) : number(figure);
}

std::string metric_title(std::string_view metric) {
  const auto found = std::ranges::find(kStepTitles, metric, &std::pair<std::string_view, const char*>::first);
  return found == kStepTitles.end() ? std::string(metric) : found->second;
}

std::vector<std::size_t> shown_metrics(const config::Scenario& scenario) {
  const auto metrics = search_metrics(scenario.workload.kind);
  const std::vector<std::string> asked = asked_metrics(scenario);
  std::vector<std::size_t> shown;
  for (std::size_t index = 0; index < metrics.size(); ++index)
    if (scenario.workload.kind != config::WorkloadKind::serving ||
        std::ranges::find(kShownOfRequests, metrics[index]) != kShownOfRequests.end() ||
        std::ranges::find(asked, metrics[index]) != asked.end())
      shown.push_back(index);
  return shown;
}

}  // namespace dculab::cli
