// Results of benchmark clients that are no part of a serving program: GuideLLM and AIPerf.
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "config/benchmarks/json_results.hpp"
#include "fields/json_text.hpp"

namespace dculab::config {
namespace {

[[nodiscard]] std::optional<double> number_at(const Node* map, std::string_view key) {
  const Node* found = map == nullptr ? nullptr : map->find(key);
  if (found == nullptr || !(found->is(ScalarType::integer) || found->is(ScalarType::real))) return std::nullopt;
  const double value = number_of(*found);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

[[nodiscard]] std::string text_at(const Node* map, std::string_view key) {
  const Node* found = map == nullptr ? nullptr : map->find(key);
  return found != nullptr && found->is(ScalarType::text) ? found->text : "";
}

[[nodiscard]] const Node* member(const Node* map, std::string_view key) {
  return map == nullptr ? nullptr : map->find(key);
}

void add(BenchmarkMetric metric, std::optional<double> quantile, std::optional<double> value, double unit,
         BenchmarkResult& result) {
  if (value && *value > 0) result.figures.push_back({metric, quantile, *value * unit});
}

struct Percentile {
  std::string_view key;
  double quantile;
};
constexpr std::array kPercentiles{Percentile{"p50", 0.5}, Percentile{"p90", 0.9}, Percentile{"p95", 0.95},
                                  Percentile{"p99", 0.99}};

void require(const Node& document, bool holds, const char* what, ProblemList& problems) {
  if (!holds) problems.add(document, what);
}

// 1 and more, as an int.
[[nodiscard]] int count_of(std::optional<double> value) {
  return value && *value >= 1 && *value <= 1 << 24 ? static_cast<int>(std::lround(*value)) : 0;
}

// The answered requests of a metric, whose statistics have one shape in all versions.
[[nodiscard]] const Node* answered(const Node* metrics, std::string_view metric) {
  return member(member(metrics, metric), "successful");
}

// Means of tokens: at least 1, and at most what a request may have.
[[nodiscard]] std::optional<double> tokens_of(std::optional<double> mean) {
  return mean && *mean >= 1 && *mean <= kLongestContext ? mean : std::nullopt;
}

[[nodiscard]] std::optional<double> rate_of(std::optional<double> rate) {
  return rate && *rate >= 1e-6 && *rate <= 1e9 ? rate : std::nullopt;
}

void read_strategy(const Node* strategy, BenchmarkResult& result) {
  const std::string kind = text_at(strategy, "type_");
  const bool has_rate = kind == "constant" || kind == "poisson";
  result.is_load_known = has_rate || kind == "synchronous" || kind == "concurrent" || kind == "throughput";
  for (const char* key : {"streams", "max_concurrency"})
    if (const int most = count_of(number_at(strategy, key)); most > 0 && !result.max_concurrency)
      result.max_concurrency = most;
  if (kind == "synchronous") result.max_concurrency = 1;
  if (!has_rate) return;
  result.requests_per_second = rate_of(number_at(strategy, "rate"));
  result.burstiness = kind == "poisson" ? 1 : kEvenGaps;
}

// Seconds of a metric's unit.
[[nodiscard]] double seconds_in(const Node* metric, ProblemList& problems) {
  const std::string unit = text_at(metric, "unit");
  for (const auto& [name, seconds] : {std::pair("ms", 1e-3), std::pair("sec", 1.0), std::pair("s", 1.0),
                                      std::pair("us", 1e-6), std::pair("ns", 1e-9)})
    if (unit == name) return seconds;
  if (metric != nullptr) problems.add(*metric, metric->key + ".unit: '" + unit + "' is no unit of time that is known");
  return 1;
}

// 0.3: input_config.loadgen; 0.13: input_config.phases.profiling or .profiling.
void read_aiperf_load(const Node* input, BenchmarkResult& result) {
  const Node* load = member(input, "loadgen");
  if (load == nullptr) load = member(member(input, "phases"), "profiling");
  if (load == nullptr) load = member(input, "profiling");
  if (const int most = count_of(number_at(load, "concurrency")); most > 0) result.max_concurrency = most;
  for (const char* key : {"request_rate", "rate"})
    if (!result.requests_per_second) result.requests_per_second = rate_of(number_at(load, key));
  const std::string pattern =
      text_at(load, "arrival_pattern") + text_at(load, "request_rate_mode") + text_at(load, "type");
  if (pattern.find("constant") != std::string::npos) result.burstiness = kEvenGaps;
  result.is_load_known = result.max_concurrency || result.requests_per_second;
}

}  // namespace

BenchmarkResult read_guidellm(const Node& benchmark, ProblemList& problems) {
  BenchmarkResult result{.tool = BenchmarkTool::guidellm, .label = {}};
  const Node* metrics = benchmark.find("metrics");
  // 0.3: args.strategy; later: config.strategy
  const Node* asked = benchmark.find("config") != nullptr ? benchmark.find("config") : benchmark.find("args");
  read_strategy(member(asked, "strategy"), result);
  result.model = text_at(member(asked, "backend"), "model");
  if (result.model.empty()) result.model = text_at(benchmark.find("worker"), "backend_model");
  const Node* latency = answered(metrics, "request_latency");
  result.requests = count_of(number_at(latency, "count"));
  require(benchmark, result.requests > 0, "metrics.request_latency.successful.count: no request was answered",
          problems);
  for (const char* status : {"errored", "incomplete"})
    result.failed += count_of(number_at(member(member(metrics, "request_latency"), status), "count"));
  result.prompt_tokens = tokens_of(number_at(answered(metrics, "prompt_token_count"), "mean"));
  result.output_tokens = tokens_of(number_at(answered(metrics, "output_token_count"), "mean"));
  add(BenchmarkMetric::duration, {}, number_at(&benchmark, "duration"), 1, result);
  add(BenchmarkMetric::request_rate, {}, number_at(answered(metrics, "requests_per_second"), "mean"), 1, result);
  add(BenchmarkMetric::output_rate, {}, number_at(answered(metrics, "output_tokens_per_second"), "mean"), 1, result);
  const Node* ttft = answered(metrics, "time_to_first_token_ms");
  add(BenchmarkMetric::ttft, {}, number_at(ttft, "mean"), 1e-3, result);
  add(BenchmarkMetric::itl, {}, number_at(answered(metrics, "inter_token_latency_ms"), "mean"), 1e-3, result);
  add(BenchmarkMetric::latency, {}, number_at(latency, "mean"), 1, result);
  for (const auto& [key, quantile] : kPercentiles) {
    add(BenchmarkMetric::ttft, quantile, number_at(member(ttft, "percentiles"), key), 1e-3, result);
    add(BenchmarkMetric::latency, quantile, number_at(member(latency, "percentiles"), key), 1, result);
  }
  return result;
}

BenchmarkResult read_aiperf(const Node& document, ProblemList& problems) {
  BenchmarkResult result{.tool = BenchmarkTool::aiperf, .label = {}};
  const auto average = [&document](std::string_view metric) { return number_at(document.find(metric), "avg"); };
  const Node* input = document.find("input_config");
  result.requests = count_of(average("request_count"));
  result.failed = count_of(average("error_request_count"));
  require(document, result.requests > 0, "request_count: is missing, or no request was answered", problems);
  read_aiperf_load(input, result);
  if (const Node* names = member(member(input, "endpoint"), "model_names");
      names != nullptr && !names->children.empty())
    result.model = names->children.front().text;
  result.prompt_tokens = tokens_of(average("input_sequence_length"));
  result.output_tokens = tokens_of(average("output_sequence_length"));
  if (const Node* duration = document.find("benchmark_duration");
      duration != nullptr && duration->kind == NodeKind::map)
    add(BenchmarkMetric::duration, {}, average("benchmark_duration"), seconds_in(duration, problems), result);
  add(BenchmarkMetric::request_rate, {}, average("request_throughput"), 1, result);
  add(BenchmarkMetric::output_rate, {}, average("output_token_throughput"), 1, result);
  struct Latency {
    std::string_view key;
    BenchmarkMetric metric;
  };
  for (const auto& [key, metric] : std::array{Latency{"time_to_first_token", BenchmarkMetric::ttft},
                                              Latency{"inter_token_latency", BenchmarkMetric::tpot},
                                              Latency{"request_latency", BenchmarkMetric::latency}}) {
    const Node* latency = document.find(key);
    if (latency == nullptr || latency->kind != NodeKind::map) continue;
    const double unit = seconds_in(latency, problems);
    add(metric, {}, number_at(latency, "avg"), unit, result);
    for (const auto& [word, quantile] : kPercentiles) add(metric, quantile, number_at(latency, word), unit, result);
  }
  return result;
}

}  // namespace dculab::config
