#include "present/study/metric_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/report.hpp"
#include "study/search/search_metrics.hpp"

namespace dculab::present {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 4> kStepTitles{
    {{"step_time", "step"},
     {"tokens_per_second", "tokens/s"},
     {"kv_bytes", "KV cache"},
     {"max_sequences", "sequences that fit"}}};
constexpr std::array<std::string_view, 5> kShownOfRequests{"output_tokens_per_second", "ttft_p50", "ttft_p99",
                                                           "tpot_p50", "tpot_p99"};

}  // namespace

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
  const auto metrics = study::search_metrics(scenario.workload.kind);
  const std::vector<std::string> asked = study::asked_metrics(scenario);
  std::vector<std::size_t> shown;
  for (std::size_t index = 0; index < metrics.size(); ++index)
    if (scenario.workload.kind != config::WorkloadKind::serving ||
        std::ranges::find(kShownOfRequests, metrics[index]) != kShownOfRequests.end() ||
        std::ranges::find(asked, metrics[index]) != asked.end())
      shown.push_back(index);
  return shown;
}

}  // namespace dculab::present
