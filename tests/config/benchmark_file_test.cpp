// Results of benchmark tools as those wrote them (tests/data/foreign/README.md says where each is from).
#include "config/benchmarks/benchmark_file.hpp"

#include <algorithm>
#include <string>

#include "config/benchmarks/vllm_writer.hpp"
#include "config/known_format.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::config;
using Catch::Matchers::WithinRel;

namespace {

std::string foreign(const std::string& name) { return DCULAB_SOURCE_DIR "/tests/data/foreign/" + name; }

BenchmarkResult only_result(const std::string& name) {
  const auto results = read_benchmark_file(foreign(name));
  REQUIRE(results.size() == 1);
  return results.front();
}

double figure(const BenchmarkResult& result, const std::string& wanted) {
  for (const BenchmarkFigure& each : result.figures)
    if (title(each) == wanted) return each.value;
  FAIL("there is no " << wanted);
  return 0;
}

std::size_t count(const BenchmarkResult& result, const std::string& wanted) {
  return static_cast<std::size_t>(
      std::ranges::count_if(result.figures, [&](const auto& each) { return title(each) == wanted; }));
}

}  // namespace

TEST_CASE("a result of vllm bench serve has its load, requests and latencies", "[benchmarks]") {
  const BenchmarkResult result = only_result("vllm/mi50_vllm0.11.0_qwen3-vl-32b-awq_c1_pp8192_detailed.json");
  CHECK(result.tool == BenchmarkTool::vllm_serve);
  CHECK(result.model == "QuantTrio/Qwen3-VL-32B-Instruct-AWQ");
  CHECK(result.program == "openai");
  CHECK(result.label.empty());
  CHECK(result.requests == 10);
  CHECK_FALSE(result.requests_per_second);  // "inf"
  CHECK(result.max_concurrency == 1);
  CHECK(result.prompt_tokens == 8192);
  CHECK(result.output_tokens == 1);
  REQUIRE(result.recorded.size() == 10);
  CHECK(result.recorded.front().prompt_tokens == 8192);
  CHECK_FALSE(result.has_arrivals);
  CHECK_THAT(figure(result, "duration"), WithinRel(329.8689369679778));
  CHECK_THAT(figure(result, "requests_per_second"), WithinRel(0.030315070257648284));
  CHECK(count(result, "itl_mean") == 0);  // of one token each
}

TEST_CASE("results of several rates in one file are several", "[benchmarks]") {
  const auto results =
      read_benchmark_file(foreign("vllm/benchmark_serving.py_2025-04_llama3.1-8b_qps1-10_concatenated.jsonl"));
  REQUIRE(results.size() == 12);
  CHECK(results[0].requests_per_second == 1);
  CHECK(results[1].requests_per_second == 10);
  CHECK_FALSE(results[5].requests_per_second);
  CHECK(results[5].label == "line 6");
  CHECK(results[0].program == "vllm");
  CHECK(results[0].prompt_tokens == 1000);
  CHECK(results[0].output_tokens == 100);
  CHECK(figure(results[0], "ttft_mean") > 0.01);
  CHECK(figure(results[0], "ttft_mean") < 1);
  for (const BenchmarkResult& result : results) CHECK(count(result, "ttft_p50") == 1);
}

TEST_CASE("chosen percentiles and end-to-end latencies are read", "[benchmarks]") {
  const BenchmarkResult result = only_result("vllm/ascend_vllm2026-07_qwen2.5-7b_rate4_c16_p50p95p99_e2el.json");
  CHECK(result.requests_per_second == 4);
  CHECK(result.max_concurrency == 16);
  for (const char* wanted : {"ttft_p95", "tpot_p99", "latency_p50", "latency_mean"}) CHECK(count(result, wanted) == 1);
}

TEST_CASE("requests that failed are no part of what was served", "[benchmarks]") {
  for (const char* name : {"vllm/cpu_vllm0.25.1_opt125m_all_failed.json",
                           "vllm/gh200x4_vllm2026-07_glm5.2-w4a16_c1_detailed_failed-request.json"})
    CHECK_THROWS_WITH(read_benchmark_file(foreign(name)), ContainsSubstring("completed"));
  const BenchmarkResult some = read_benchmarks("r.json", R"({"completed": 2, "failed": 1, "duration": 3.0,
      "total_input_tokens": 30, "total_output_tokens": 8, "request_throughput": 0.6,
      "input_lens": [10, 20, 99], "output_lens": [4, 4, 0], "ttfts": [0.1, 0.2, 0.0]})")
                                   .front();
  CHECK(some.recorded.size() == 2);
  CHECK(some.requests == 2);
  CHECK(some.failed == 1);
}

TEST_CASE("offline results of vLLM have a time and no shape", "[benchmarks]") {
  const BenchmarkResult latency = only_result("vllm/mi300x_vllm2025-08_llama3.1-8b_bs8_in128_out128.json");
  CHECK(latency.tool == BenchmarkTool::vllm_latency);
  CHECK_FALSE(latency.prompt_tokens);
  REQUIRE(latency.figures.size() == 1);
  CHECK(latency.figures.front().deviation > 0);
  const BenchmarkResult throughput = only_result("vllm/mi50_vllm_llama3.1-8b_tp2.json");
  CHECK(throughput.tool == BenchmarkTool::vllm_throughput);
  CHECK(throughput.requests == 100);
  CHECK_THAT(figure(throughput, "total_tokens_per_second"), WithinRel(229.25463253911087));
}

TEST_CASE("SGLang's lines have Infinity, its names of latencies and the range of drawn lengths", "[benchmarks]") {
  const BenchmarkResult drawn = only_result("sglang/bench_serving_sglang0.5.x_qwen2.5-3b_in128_out128_c8.jsonl");
  CHECK(drawn.tool == BenchmarkTool::sglang_serving);
  CHECK(drawn.program == "sglang");
  CHECK(drawn.model == "Qwen/Qwen2.5-3B-Instruct");
  CHECK_FALSE(drawn.requests_per_second);
  CHECK(drawn.max_concurrency == 8);
  REQUIRE(drawn.prompt_range);
  CHECK(drawn.prompt_range->least == 1);
  CHECK(drawn.prompt_range->most == 128);
  CHECK_THAT(*drawn.prompt_tokens, WithinRel(61.45));
  CHECK_THAT(figure(drawn, "latency_p99"), WithinRel(0.7118622327689087));
  CHECK_THAT(figure(drawn, "itl_p95"), WithinRel(0.01785111976787448));
  const auto rates = read_benchmark_file(foreign("sglang/bench_serving_2024-12_h200_llama3.3-70b_rates1-16.jsonl"));
  CHECK(rates.size() > 1);
  CHECK(rates.front().requests_per_second == 1);
  const std::string line = R"({"backend": "sglang", "dataset_name": "random", "request_rate": 1.0, "duration": 3, )"
                           R"("total_output_tokens_retokenized": 9, "mean_e2e_latency_ms": 8, "completed": 3})";
  CHECK_THROWS_WITH(read_benchmarks("x.jsonl", line + "\n0\n"), ContainsSubstring("must be a map of keys and values"));
}

TEST_CASE("GuideLLM's benchmarks have their strategy and milliseconds", "[benchmarks]") {
  const BenchmarkResult old = only_result("guidellm/CUT_guidellm0.3_llm-d_qwen3-0.6b_constant10rps.json");
  CHECK(old.model == "Qwen/Qwen3-0.6B");
  CHECK(old.requests_per_second == 10);
  CHECK(old.burstiness > 1000);  // constant gaps
  CHECK(old.requests == 586);
  CHECK_THAT(figure(old, "ttft_mean"), WithinRel(1.0062143587008272));
  CHECK_THAT(figure(old, "ttft_p99"), WithinRel(1.0194225311279297));
  CHECK(count(old, "tpot_mean") == 0);  // theirs counts the first token
  const auto two = read_benchmark_file(foreign("guidellm/guidellm0.8.0.dev18_mockserver_constant_2benchmarks.json"));
  REQUIRE(two.size() == 2);
  CHECK(two[0].label == "benchmark 1");
  CHECK(two[0].requests_per_second == 2);
  CHECK_THAT(*two[0].prompt_tokens, WithinRel(71.5));
  CHECK_THAT(figure(two[0], "itl_mean"), WithinRel(0.0011508464813232422));
}

TEST_CASE("AIPerf's inter-token latency is a request's mean", "[benchmarks]") {
  const BenchmarkResult result = only_result("aiperf/aiperf_qwen_concurrency2_profile_export_aiperf.json");
  CHECK(result.model == "Qwen/Qwen3-0.6B");
  CHECK(result.max_concurrency == 2);
  CHECK(result.requests == 64);
  CHECK(result.prompt_tokens == 100);
  CHECK_THAT(figure(result, "tpot_mean"), WithinRel(0.01865274615971627));
  CHECK_THAT(figure(result, "latency_mean"), WithinRel(3.7477475654218727, 1e-9));
  CHECK_THAT(figure(result, "output_tokens_per_second"), WithinRel(100.6512156752534));
}

TEST_CASE("llama-bench's four forms are one", "[benchmarks]") {
  const auto json = read_benchmark_file(foreign("llama-bench/docsample_b5163.json"));
  const auto csv = read_benchmark_file(foreign("llama-bench/docsample_b5163.csv"));
  const auto sql = read_benchmark_file(foreign("llama-bench/docsample_b5163.sql"));
  REQUIRE(json.size() == 2);
  REQUIRE((csv.size() == 2 && sql.size() == 2));
  for (const auto& results : {json, csv, sql}) {
    CHECK(results[0].label == "pp512");
    CHECK(results[0].prompt_tokens == 512);
    CHECK(results[0].weights == "Q4_K_M");
    CHECK(results[0].max_num_batched_tokens == 512);
    CHECK(results[0].devices == 1);
    CHECK(results[0].figures.front().metric == BenchmarkMetric::prefill_rate);
    CHECK(results[1].label == "tg128");
    CHECK(results[1].figures.front().metric == BenchmarkMetric::decode_rate);
  }
  CHECK_THAT(csv[0].figures.front().value, WithinRel(7285.676949));
  CHECK_THAT(csv[0].figures.front().deviation, WithinRel(100.064434));
  CHECK(read_benchmark_file(foreign("llama-bench/docsample_b1275_old-fields.csv")).size() ==
        read_benchmark_file(foreign("llama-bench/docsample_b1275_old-fields.json")).size());
}

TEST_CASE("llama-bench names depths, and the devices that were chosen", "[benchmarks]") {
  const auto chosen = read_benchmark_file(foreign("llama-bench/mi50_360e134_qwen3.5-9b-q8_0.jsonl"));
  CHECK(chosen.front().devices == 1);  // ROCm0 of four
  CHECK(chosen.front().weights == "Q8_0");
  const auto depths = read_benchmark_file(foreign("llama-bench/strixhalo_b6865_llama3.2-1b_n_depth.jsonl"));
  const auto deep = std::ranges::find_if(depths, [](const auto& each) { return each.prefix_tokens.has_value(); });
  REQUIRE(deep != depths.end());
  CHECK_THAT(deep->label, ContainsSubstring(" @ d"));
}

TEST_CASE("a run that is written as vLLM's is read as it was", "[benchmarks]") {
  VllmRun run{.model = "m", .requests_per_second = 2.5, .burstiness = 0.5, .max_concurrency = 7};
  run.requests = {{Seconds(10), 100, {Seconds(10.5), Seconds(10.6), Seconds(10.8)}},
                  {Seconds(11), 50, {Seconds(11.25), Seconds(11.5)}}};
  const auto results = read_benchmarks("run.json", vllm_serve_json(run));
  REQUIRE(results.size() == 1);
  const BenchmarkResult& read = results.front();
  CHECK(read.requests_per_second == 2.5);
  CHECK(read.burstiness == 0.5);
  CHECK(read.max_concurrency == 7);
  CHECK(read.has_arrivals);
  REQUIRE(read.recorded.size() == 2);
  CHECK(read.recorded[1].arrival == Seconds(1));
  CHECK(read.recorded[0].output_tokens == 3);
  CHECK_THAT(figure(read, "duration"), WithinRel(1.5));
  CHECK_THAT(figure(read, "ttft_mean"), WithinRel(0.375));
  CHECK_THAT(figure(read, "tpot_mean"), WithinRel(0.2));
  CHECK_THAT(figure(read, "itl_p50"), WithinRel(0.2));
  CHECK_THAT(figure(read, "latency_p90"), WithinRel(0.77));
}

TEST_CASE("what is no result is named, with the command that takes it", "[benchmarks]") {
  const auto named = [](const std::string& text) {
    const auto format = recognize(text);
    return format ? std::string(description(*format)) : std::string();
  };
  CHECK_THAT(named("GGUF\x03"), ContainsSubstring("GGUF"));
  CHECK_THAT(named("SQLite format 3"), ContainsSubstring("dculab import"));
  CHECK_THAT(named(R"({"schemaVersion": 1, "traceEvents": []})"), ContainsSubstring("dculab import"));
  CHECK_THAT(named("TIMESTAMP,ContextTokens,GeneratedTokens\n"), ContainsSubstring("workload.file"));
  CHECK_THAT(named(R"({"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [0]})"),
             ContainsSubstring("workload.file"));
  CHECK_THAT(named(R"([{"id": "x", "conversations": []}])"), ContainsSubstring("ShareGPT"));
  CHECK_THAT(named(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})"), ContainsSubstring("--model"));
  CHECK(named("").empty());
  CHECK(named("{\"broken").empty());
  CHECK(named("text").empty());
  CHECK_THROWS_WITH(read_benchmarks("x.json", R"({"results": {}, "versions": {}})"),
                    ContainsSubstring("lm-eval") && ContainsSubstring("accuracy.file"));
  CHECK_THROWS_WITH(read_benchmarks("x.json", "{}"), ContainsSubstring("no result of a benchmark"));
  CHECK_THROWS_WITH(read_benchmarks("x.json", R"({"avg_latency": -1, "latencies": []})"),
                    ContainsSubstring("avg_latency"));
}
