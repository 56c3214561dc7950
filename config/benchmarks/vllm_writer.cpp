#include "config/benchmarks/vllm_writer.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace dculab::config {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kMilliseconds = 1e3;

// numpy's percentile: linear between ranks.
[[nodiscard]] double percentile(const std::vector<double>& sorted, double percent) {
  const double rank = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

void add_latency(const char* name, std::vector<double> seconds, Json& json) {
  if (seconds.empty()) seconds.push_back(0);
  std::ranges::sort(seconds);
  double sum = 0, squares = 0;
  for (const double each : seconds) sum += each;
  const double mean = sum / static_cast<double>(seconds.size());
  for (const double each : seconds) squares += (each - mean) * (each - mean);
  const auto key = [name](const char* statistic) { return std::string(statistic) + '_' + name + "_ms"; };
  json[key("mean")] = mean * kMilliseconds;
  json[key("median")] = percentile(seconds, 50) * kMilliseconds;
  json[key("std")] = std::sqrt(squares / static_cast<double>(seconds.size())) * kMilliseconds;
  json[key("p90")] = percentile(seconds, 90) * kMilliseconds;
  json[key("p95")] = percentile(seconds, 95) * kMilliseconds;
  json[key("p99")] = percentile(seconds, 99) * kMilliseconds;
}

// What clients saw, request by request, in s.
struct Detail {
  std::vector<int> input_lens, output_lens;
  std::vector<double> ttfts, tpots, all_itls, latencies, start_times;
  std::vector<std::vector<double>> itls;
  double first = 0, last = 0;
  std::int64_t input_tokens = 0, output_tokens = 0;
};

[[nodiscard]] Detail detail_of(const VllmRun& run) {
  Detail detail;
  detail.first = run.requests.front().sent.value();
  for (const VllmRun::Request& request : run.requests) {
    const double sent = request.sent.value();
    detail.first = std::min(detail.first, sent);
    detail.last = std::max(detail.last, request.token_times.back().value());
    detail.input_lens.push_back(request.prompt_tokens);
    detail.output_lens.push_back(static_cast<int>(request.token_times.size()));
    detail.input_tokens += request.prompt_tokens;
    detail.output_tokens += detail.output_lens.back();
    detail.start_times.push_back(sent);
    detail.ttfts.push_back(request.token_times.front().value() - sent);
    detail.latencies.push_back(request.token_times.back().value() - sent);
    std::vector<double>& itls = detail.itls.emplace_back();
    for (std::size_t token = 1; token < request.token_times.size(); ++token)
      itls.push_back((request.token_times[token] - request.token_times[token - 1]).value());
    detail.all_itls.insert(detail.all_itls.end(), itls.begin(), itls.end());
    if (!itls.empty())
      detail.tpots.push_back((detail.latencies.back() - detail.ttfts.back()) / static_cast<double>(itls.size()));
  }
  return detail;
}

}  // namespace

void VllmRun::add(const Sequence& sequence) {
  requests.push_back(
      {sequence.request.arrival - sequence.request.reading, sequence.num_prompt_tokens(), sequence.token_times});
}

std::string vllm_serve_json(const VllmRun& run) {
  const Detail detail = detail_of(run);
  const double duration = detail.last - detail.first;
  Json json{{"endpoint_type", "vllm"}, {"backend", "vllm"}, {"label", nullptr}, {"model_id", run.model}};
  json["num_prompts"] = run.requests.size() + static_cast<std::size_t>(run.failed);
  json["request_rate"] = run.requests_per_second ? Json(*run.requests_per_second) : Json("inf");
  json["burstiness"] = run.burstiness;
  json["max_concurrency"] = run.max_concurrency ? Json(*run.max_concurrency) : Json();
  json["duration"] = duration;
  json["completed"] = run.requests.size();
  json["failed"] = run.failed;
  json["total_input_tokens"] = detail.input_tokens;
  json["total_output_tokens"] = detail.output_tokens;
  json["request_throughput"] = static_cast<double>(run.requests.size()) / duration;
  json["output_throughput"] = static_cast<double>(detail.output_tokens) / duration;
  json["total_token_throughput"] = static_cast<double>(detail.input_tokens + detail.output_tokens) / duration;
  json["input_lens"] = detail.input_lens;
  json["output_lens"] = detail.output_lens;
  json["ttfts"] = detail.ttfts;
  json["itls"] = detail.itls;
  json["start_times"] = detail.start_times;
  add_latency("ttft", detail.ttfts, json);
  add_latency("tpot", detail.tpots, json);
  add_latency("itl", detail.all_itls, json);
  add_latency("e2el", detail.latencies, json);
  return json.dump() + "\n";
}

std::string vllm_parameters_json(const std::vector<ProgramOptions>& combinations) {
  Json list = Json::array();
  for (const ProgramOptions& options : combinations) {
    Json object = Json::object();
    for (const auto& [option, value] : options) {
      std::string key = option;
      std::ranges::replace(key, '-', '_');
      const bool is_number = value.find_first_not_of("0123456789.") == std::string::npos;
      object[key] = value.empty() ? Json(true) : is_number ? Json::parse(value) : Json(value);
    }
    list.push_back(std::move(object));
  }
  constexpr int kIndent = 2;
  return list.dump(kIndent) + "\n";
}

}  // namespace dculab::config
