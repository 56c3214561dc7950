#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "config/benchmarks/json_results.hpp"
#include "fields/json_text.hpp"

namespace dculab::config {
namespace {

constexpr double kMilli = 1e-3;
constexpr int kMostRequests = 1 << 24;

[[nodiscard]] bool is_number(const Node& node) { return node.is(ScalarType::integer) || node.is(ScalarType::real); }

// "mean", "median", "p99", "p99.9" of a key's beginning; nothing else is a statistic that is compared.
struct Statistic {
  std::optional<double> quantile;
};
[[nodiscard]] std::optional<Statistic> statistic_of(std::string_view word) {
  if (word == "mean") return Statistic{};
  if (word == "median") return Statistic{0.5};
  double percentile = 0;
  if (!word.starts_with('p')) return std::nullopt;
  const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), percentile);
  if (error != std::errc() || end != word.data() + word.size() || percentile < 0 || percentile > 100)
    return std::nullopt;
  return Statistic{percentile / 100};
}

struct LatencyKey {
  std::string_view name;
  BenchmarkMetric metric;
};
constexpr std::array kLatencies{LatencyKey{"ttft", BenchmarkMetric::ttft}, LatencyKey{"tpot", BenchmarkMetric::tpot},
                                LatencyKey{"itl", BenchmarkMetric::itl}, LatencyKey{"e2el", BenchmarkMetric::latency},
                                LatencyKey{"e2e_latency", BenchmarkMetric::latency}};

// "p99_ttft_ms": 1234.5; a latency of 0 is one that no request had.
void add_latency(const Node& member, std::vector<BenchmarkFigure>& figures) {
  const std::string_view key = member.key;
  if (!key.ends_with("_ms") || !is_number(member) || !(number_of(member) > 0)) return;
  const std::size_t cut = key.find('_');
  const std::string_view latency = key.substr(cut + 1, key.size() - std::min(key.size(), cut + 4));
  const auto* known = std::ranges::find(kLatencies, latency, &LatencyKey::name);
  const auto statistic = statistic_of(key.substr(0, cut));
  if (known == kLatencies.end() || !statistic) return;
  const BenchmarkFigure figure{known->metric, statistic->quantile, number_of(member) * kMilli};
  // "median" and "p50" are one figure.
  const auto is_same = [&](const BenchmarkFigure& each) {
    return each.metric == figure.metric && each.quantile == figure.quantile;
  };
  if (std::ranges::none_of(figures, is_same)) figures.push_back(figure);
}

void add_rate(MapReader& reader, const char* key, BenchmarkMetric metric, BenchmarkResult& result) {
  double value = 0;
  reader.optional(key, value, above(0));
  if (value > 0) result.figures.push_back({metric, std::nullopt, value});
}

// Texts and null: what tools write of an option that was not given.
[[nodiscard]] std::string text_of(MapReader& reader, const char* key) {
  const Node* node = reader.optional(key);
  return node != nullptr && node->is(ScalarType::text) ? node->text : "";
}

[[nodiscard]] std::vector<double> numbers_of(MapReader& reader, const char* key) {
  std::vector<double> values;
  const Node* node = reader.optional(key);
  if (node != nullptr && node->kind == NodeKind::list) reader.read(*node, values);
  return values;
}

// The requests of --save-detailed (SGLang: --output-details) that were answered.
void read_recorded(MapReader& reader, BenchmarkResult& result) {
  const std::vector<double> prompts = numbers_of(reader, "input_lens"), outputs = numbers_of(reader, "output_lens");
  const std::vector<double> starts = numbers_of(reader, "start_times");
  if (prompts.empty() || prompts.size() != outputs.size()) return;
  result.has_arrivals = starts.size() == prompts.size();
  const double first = result.has_arrivals ? *std::ranges::min_element(starts) : 0;
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    const bool was_answered = prompts[index] >= 1 && outputs[index] >= 1 && prompts[index] <= kLongestContext &&
                              outputs[index] <= kLongestContext;
    if (!was_answered) continue;
    result.recorded.push_back({Seconds(result.has_arrivals ? starts[index] - first : 0),
                               static_cast<int>(prompts[index]), static_cast<int>(outputs[index])});
  }
  if (result.has_arrivals) std::ranges::stable_sort(result.recorded, {}, &RecordedRequest::arrival);
}

void read_rate(const Node& rate, MapReader& reader, BenchmarkResult& result) {
  double per_second = 0;
  if (is_number(rate)) {
    reader.read(rate, per_second, between(1e-6, 1e9));
    if (per_second > 0) result.requests_per_second = per_second;
  } else if (rate.text != "inf") {
    result.unmodelled = "request_rate '" + rate.text + "'";
  }
}

void read_load(MapReader& reader, BenchmarkResult& result) {
  if (const Node* rate = reader.optional("request_rate"); rate != nullptr && rate->kind == NodeKind::scalar)
    read_rate(*rate, reader, result);
  if (const Node* node = reader.optional("burstiness"); node != nullptr && node->kind == NodeKind::scalar) {
    if (node->text == "inf")
      result.burstiness = kEvenGaps;
    else
      reader.read(*node, result.burstiness, between(1e-3, kEvenGaps));
  }
  if (!text_of(reader, "ramp_up_strategy").empty()) result.unmodelled = "ramp_up_strategy";
  if (const Node* node = reader.optional("max_concurrency"); node != nullptr && is_number(*node)) {
    int most = 1;
    reader.read(*node, most, between(1, kMostRequests));
    result.max_concurrency = most;
  }
}

// Of all requests; the mean is at most what a request may have.
void read_mean(MapReader& reader, const char* key, int requests, std::optional<double>& mean) {
  double tokens = 0;
  reader.optional(key, tokens, between(0, static_cast<double>(requests) * kLongestContext));
  if (tokens > 0) mean = tokens / requests;
}

void read_tokens(MapReader& reader, BenchmarkResult& result) {
  read_mean(reader, "total_input_tokens", result.requests, result.prompt_tokens);
  read_mean(reader, "total_output_tokens", result.requests, result.output_tokens);
}

// SGLang's --random-range-ratio: lengths from ratio x length to length (sample_random_requests).
[[nodiscard]] std::optional<LengthRange> drawn_range(MapReader& reader, const char* key, double ratio) {
  const Node* node = reader.optional(key);
  if (node == nullptr || !is_number(*node) || !(ratio >= 0 && ratio < 1)) return std::nullopt;
  const double longest = number_of(*node);
  if (!(longest >= 1 && longest <= kLongestContext)) return std::nullopt;
  return LengthRange{std::max(1, static_cast<int>(longest * ratio)), static_cast<int>(longest)};
}

void read_drawn_lengths(MapReader& reader, BenchmarkResult& result) {
  const Node* ratio = reader.optional("random_range_ratio");
  if (ratio == nullptr || !is_number(*ratio) || text_of(reader, "dataset_name") != "random") return;
  result.prompt_range = drawn_range(reader, "random_input_len", number_of(*ratio));
  result.output_range = drawn_range(reader, "random_output_len", number_of(*ratio));
}

// A tool's name of a server's option and the scenario's.
struct ServerKey {
  std::string_view key, scenario;
};

// Options that `vllm bench sweep` and --metadata leave among a result's keys, spelled with - or _.
constexpr std::array kVllmServer{ServerKey{"max_num_seqs", "engine.max_num_seqs"},
                                 ServerKey{"max_num_batched_tokens", "engine.max_num_batched_tokens"},
                                 ServerKey{"gpu_memory_utilization", "engine.gpu_memory_utilization"},
                                 ServerKey{"block_size", "kv_cache.block_size"},
                                 ServerKey{"tensor_parallel_size", "deployment.tensor_parallel_size"},
                                 ServerKey{"pipeline_parallel_size", "deployment.pipeline_parallel_size"},
                                 ServerKey{"data_parallel_size", "deployment.data_parallel_size"}};
// Of SGLang's server_info.
constexpr std::array kSglangServer{
    ServerKey{"tp_size", "deployment.tensor_parallel_size"}, ServerKey{"dp_size", "deployment.data_parallel_size"},
    ServerKey{"page_size", "kv_cache.block_size"}, ServerKey{"max_running_requests", "engine.max_num_seqs"},
    ServerKey{"chunked_prefill_size", "engine.max_num_batched_tokens"}};

void read_server(const Node& map, std::span<const ServerKey> keys, BenchmarkResult& result) {
  for (const Node& member : map.children) {
    std::string key = member.key;
    std::ranges::replace(key, '-', '_');
    const auto known = std::ranges::find(keys, key, &ServerKey::key);
    if (known != keys.end() && member.kind == NodeKind::scalar && !member.text.starts_with('-'))
      result.server.emplace_back(known->scenario, member.text);
  }
}

// What vLLM's and SGLang's serving benchmarks have in common.
[[nodiscard]] BenchmarkResult read_served(MapReader& reader, BenchmarkTool tool) {
  BenchmarkResult result{.tool = tool, .label = {}};
  reader.required("completed", result.requests, between(1, kMostRequests));
  reader.optional("failed", result.failed, between(0, kMostRequests));
  read_load(reader, result);
  read_tokens(reader, result);
  read_recorded(reader, result);
  if (!result.recorded.empty()) result.requests = static_cast<int>(result.recorded.size());
  double duration = 0;
  reader.required("duration", duration, above(0));
  if (duration > 0) result.figures.push_back({BenchmarkMetric::duration, std::nullopt, duration});
  add_rate(reader, "request_throughput", BenchmarkMetric::request_rate, result);
  add_rate(reader, "output_throughput", BenchmarkMetric::output_rate, result);
  if (!reader.is_present()) return result;  // a document that is no map, which is reported
  for (const Node& member : reader.node()->children) add_latency(member, result.figures);
  return result;
}

}  // namespace

BenchmarkResult read_vllm_serve(const Node& document, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  BenchmarkResult result = read_served(reader, BenchmarkTool::vllm_serve);
  result.model = text_of(reader, "model_id");
  result.program = text_of(reader, "backend");
  if (result.program.empty()) result.program = text_of(reader, "endpoint_type");
  add_rate(reader, "total_token_throughput", BenchmarkMetric::total_rate, result);
  read_server(document, kVllmServer, result);
  return result;
}

BenchmarkResult read_sglang_serving(const Node& document, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  BenchmarkResult result = read_served(reader, BenchmarkTool::sglang_serving);
  MapReader server = reader.optional_map("server_info");
  result.model = text_of(server, "model_path");
  if (server.is_present()) read_server(*server.node(), kSglangServer, result);
  read_drawn_lengths(reader, result);
  result.program = text_of(reader, "backend");
  add_rate(reader, "total_throughput", BenchmarkMetric::total_rate, result);
  return result;
}

BenchmarkResult read_vllm_latency(const Node& document, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  BenchmarkResult result{.tool = BenchmarkTool::vllm_latency, .label = {}, .program = "vllm"};
  double latency = 0;
  reader.required("avg_latency", latency, above(0));
  const std::vector<double> runs = numbers_of(reader, "latencies");
  double squares = 0;
  for (const double run : runs) squares += (run - latency) * (run - latency);
  const double deviation = runs.size() > 1 ? std::sqrt(squares / static_cast<double>(runs.size() - 1)) : 0;
  result.figures.push_back({BenchmarkMetric::duration, std::nullopt, latency, deviation});
  return result;
}

BenchmarkResult read_vllm_throughput(const Node& document, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  BenchmarkResult result{.tool = BenchmarkTool::vllm_throughput, .label = {}, .program = "vllm"};
  reader.required("num_requests", result.requests, between(1, kMostRequests));
  double elapsed = 0;
  reader.required("elapsed_time", elapsed, above(0));
  if (elapsed > 0) result.figures.push_back({BenchmarkMetric::duration, std::nullopt, elapsed});
  add_rate(reader, "requests_per_second", BenchmarkMetric::request_rate, result);
  add_rate(reader, "tokens_per_second", BenchmarkMetric::total_rate, result);
  return result;
}

}  // namespace dculab::config
