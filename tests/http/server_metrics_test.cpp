#include "bindings/http/server_metrics.hpp"

#include <sstream>

#include "tests/support/catch.hpp"

using namespace dculab;
using http::ServerMetrics;

namespace {

Sequence sequence_at(std::vector<double> token_times, int prompt_tokens, int cached) {
  Request request;
  request.prompt_token_ids.assign(static_cast<std::size_t>(prompt_tokens), 1);
  request.arrival = Seconds(1);
  Sequence sequence(request);
  sequence.num_cached_tokens = cached;
  for (const double time : token_times) {
    sequence.token_times.emplace_back(time);
    sequence.tokens.push_back(2);
  }
  return sequence;
}

// The value of a line.
double value_of(const std::string& text, const std::string& line) {
  const std::size_t found = text.find("\n" + line + " ");
  CAPTURE(line);
  REQUIRE(found != std::string::npos);
  return std::stod(text.substr(found + line.size() + 2));
}

constexpr const char* kLabels = "model_name=\"m\\\"\",engine=\"0\"";

}  // namespace

TEST_CASE("counters, gauges and histograms under vLLM's names", "[http]") {
  ServerMetrics metrics("m\"", 1000, true);
  metrics.saw_tokens(sequence_at({1.3}, 10, 4), 1);                    // TTFT 0.3
  metrics.saw_tokens(sequence_at({1.3, 1.32}, 10, 4), 1);              // gap 0.02
  metrics.saw_tokens(sequence_at({1.3, 1.32, 1.42, 1.42}, 10, 4), 2);  // two drafted tokens after 0.1
  metrics.finished("stop", Seconds(0.4), 10, 4);
  metrics.finished("abort", Seconds(100), 10, 0);
  const std::string text = metrics.text({.running = 3, .waiting = 2, .kv_cache_usage = 0.25, .num_preemptions = 1});
  const auto value = [&](const std::string& name, const std::string& label = "") {
    return value_of(text, "vllm:" + name + "{" + kLabels + label + "}");
  };
  REQUIRE(value("num_requests_running") == 3);
  REQUIRE(value("num_requests_waiting") == 2);
  REQUIRE(value("kv_cache_usage_perc") == 0.25);
  REQUIRE(value("num_preemptions_total") == 1);
  REQUIRE(value("prompt_tokens_total") == 10);
  REQUIRE(value("generation_tokens_total") == 4);
  REQUIRE(value("prefix_cache_queries_total") == 10);
  REQUIRE(value("prefix_cache_hits_total") == 4);
  REQUIRE(value("request_success_total", ",finished_reason=\"stop\"") == 1);
  REQUIRE(value("request_success_total", ",finished_reason=\"length\"") == 0);
  REQUIRE(value("request_success_total", ",finished_reason=\"abort\"") == 1);
  REQUIRE(value("time_to_first_token_seconds_bucket", ",le=\"0.25\"") == 0);
  REQUIRE(value("time_to_first_token_seconds_bucket", ",le=\"0.5\"") == 1);
  REQUIRE(value("inter_token_latency_seconds_count") == 2);
  REQUIRE_THAT(value("inter_token_latency_seconds_sum"), WithinRel(0.12, 1e-9));
  REQUIRE(value("e2e_request_latency_seconds_bucket", ",le=\"0.3\"") == 0);
  REQUIRE(value("e2e_request_latency_seconds_bucket", ",le=\"+Inf\"") == 2);
  REQUIRE(value("request_prompt_tokens_bucket", ",le=\"10.0\"") == 2);
}

TEST_CASE("every line is a comment or a value, and buckets only grow", "[http]") {
  ServerMetrics metrics("m", 1000, false);
  for (int i = 0; i < 50; ++i) metrics.finished("length", Seconds(0.1 * i), i, 2 * i);
  std::istringstream lines(metrics.text({}));
  double before = 0;
  std::string of;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    if (line.starts_with("# HELP vllm:") || line.starts_with("# TYPE vllm:")) continue;
    REQUIRE(line.starts_with("vllm:"));
    const double value = std::stod(line.substr(line.rfind(' ')));
    const std::string name = line.substr(0, line.find("{"));
    if (name.ends_with("_bucket") && name == of) REQUIRE(value >= before);
    before = value;
    of = name;
  }
}
