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
constexpr std::array<std::string_view, 9> kShown{"step_time",
                                                 "tokens_per_second",
                                                 "kv_bytes",
                                                 "max_sequences",  // of steps
                                                 "output_tokens_per_second",
                                                 "ttft_p50",
                                                 "ttft_p99",
                                                 "tpot_p50",
                                                 "tpot_p99"};

using MetricWords = std::pair<std::string_view, std::string_view>;

constexpr std::array<MetricWords, 15> kMeanings{
    {{"step_time", "of a step"},
     {"total_time", "from the first arrival to the last token"},
     {"tokens_per_second", "of a step; of served requests those of prompts and answers"},
     {"output_tokens_per_second", "tokens of answers"},
     {"requests_per_second", "requests that end"},
     {"goodput", "requests that meet the slo"},
     {"kv_bytes", "of K and V"},
     {"max_sequences", "sequences that fit in memory"},
     {"share_within_slo", "of the requests, those that meet the slo"},
     {"tokens_per_second_per_user", "1 / the median TPOT: what one reader sees"},
     {"tokens_per_second_per_gpu", "tokens_per_second over all devices, idle ones too"},
     {"joules_per_output_token", "of all devices, idle ones too; where the machine's power is stated"},
     {"usd_per_million_tokens", "of answers, for all devices; where the machine's price is stated"},
     {"input_tokens_per_second_per_node", "tokens of prompts, a node of the pool for prefill"},
     {"output_tokens_per_second_per_node", "tokens of answers, a node of the pool for decode"}}};
constexpr std::array<MetricWords, 5> kLatencies{{{"ttft", "time to first token"},
                                                 {"tpot", "time per output token"},
                                                 {"itl", "time between two tokens of an answer"},
                                                 {"latency", "of a request, to its last token"},
                                                 {"slowdown", "latency of a request over that when it is alone"}}};
constexpr std::array<MetricWords, 4> kStatistics{
    {{"mean", "mean"}, {"p50", "median"}, {"p90", "90th percentile"}, {"p99", "99th percentile"}}};

[[nodiscard]] std::string meaning_of(std::string_view metric) {
  for (const auto& [name, meaning] : kMeanings)
    if (metric == name) return std::string(meaning);
  for (const auto& [latency, meaning] : kLatencies)
    for (const auto& [statistic, words] : kStatistics)
      if (metric == std::string(latency).append("_").append(statistic))
        return std::string(meaning).append(", ").append(words);
  return {};
}

// Without being asked for.
[[nodiscard]] bool is_shown(std::string_view metric, config::WorkloadKind workload) {
  if (metric == "tokens_per_second") return workload != config::WorkloadKind::serving;
  return std::ranges::find(kShown, metric) != kShown.end();
}

[[nodiscard]] std::string_view unit_of_metric(const config::Metric& metric) {
  if (metric.kind == config::MetricKind::time) return unit::seconds;
  if (metric.kind == config::MetricKind::size) return unit::bytes;
  if (metric.kind == config::MetricKind::rate)
    return metric.name.find("tokens_per_second") != std::string_view::npos ? unit::tokens_per_second
                                                                           : unit::requests_per_second;
  if (metric.kind == config::MetricKind::energy) return unit::joules;
  if (metric.kind == config::MetricKind::money) return unit::usd;
  if (metric.name == "share_within_slo") return unit::share;
  return metric.name.starts_with("slowdown") ? unit::ratio : unit::count;
}

}  // namespace

std::string metric_text(std::string_view metric, double figure) {
  if (std::isnan(figure)) return "-";
  const auto kind = std::ranges::find(config::metrics(), metric, &config::Metric::name)->kind;
  if (kind == config::MetricKind::time) return config::short_text(Seconds(figure));
  if (kind == config::MetricKind::size) return config::short_text(Bytes(figure));
  if (kind == config::MetricKind::energy) return config::short_text(Joules(figure));
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
    if (is_shown(metrics[index], scenario.workload.kind) || std::ranges::find(asked, metrics[index]) != asked.end())
      shown.push_back(index);
  return shown;
}

std::vector<DataKey> metric_keys() {
  std::vector<DataKey> keys;
  for (const config::Metric& metric : config::metrics())
    keys.push_back({std::string(metric.name), std::string(unit_of_metric(metric)), meaning_of(metric.name)});
  for (const char* of_pool : {"input_tokens_per_second_per_node", "output_tokens_per_second_per_node"})
    keys.push_back({of_pool, std::string(unit::tokens_per_second), meaning_of(of_pool)});
  return keys;
}

}  // namespace dculab::present
