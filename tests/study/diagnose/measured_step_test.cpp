// From what a user types or a tool wrote to times of steps.
#include "study/diagnose/measured_step.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

DiagnosisQuestion of_batch(int batch, int context) {
  DiagnosisQuestion question;
  question.step.model = "llama-3-8b";
  question.step.machine = "mi50";
  question.step.batch = batch;
  question.step.context = context;
  return question;
}

TEST_CASE("tokens per second are those of the batch, TPOT is one sequence's") {
  DiagnosisQuestion question = of_batch(8, 500);
  question.tokens_per_second = 100;
  const MeasuredStep rate = measured_steps(question).steps.front();
  CHECK(rate.time.value() == Approx(0.08));
  CHECK(rate.is_rate);
  CHECK(rate.batch == 8);
  CHECK(rate.context == 500);
  question.tokens_per_second = 0;
  question.tpot = "80ms";
  const MeasuredStep tpot = measured_steps(question).steps.front();
  CHECK(tpot.time.value() == Approx(0.08));
  CHECK_FALSE(tpot.is_rate);
}

TEST_CASE("TPOT at several contexts and batches") {
  DiagnosisQuestion question = of_batch(2, 500);
  question.at = {"512=24ms", "8x1500=66.5 ms"};
  const auto steps = measured_steps(question).steps;
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].batch == 2);
  CHECK(steps[0].context == 512);
  CHECK(steps[0].time.value() == Approx(0.024));
  CHECK(steps[1].batch == 8);
  CHECK(steps[1].context == 1500);
  CHECK(steps[1].time.value() == Approx(0.0665));
}

TEST_CASE("a rate of prompts is the time of the whole step") {
  DiagnosisQuestion question = of_batch(2, 1000);
  question.prefill_tokens_per_second = 500;
  const MeasuredStep step = measured_steps(question).steps.front();
  CHECK(step.phase == Phase::prefill);
  CHECK(step.time.value() == Approx(4));
  CHECK(question.step.phase == "prefill");
}

TEST_CASE("llama-bench and vllm bench serve give steps") {
  DiagnosisQuestion depths = of_batch(1, 1024);
  depths.step.model = "llama-3.2-1b";
  depths.files = {DCULAB_SOURCE_DIR "/tests/data/foreign/llama-bench/strixhalo_b6865_llama3.2-1b_n_depth.jsonl"};
  const auto rows = measured_steps(depths).steps;
  REQUIRE(rows.size() >= 2);
  CHECK(rows.front().context < rows.back().context);
  CHECK(rows.front().time < rows.back().time);
  CHECK(depths.step.stack == "llama.cpp");
  CHECK_THAT(depths.step.weights, ContainsSubstring("int4"));
  DiagnosisQuestion served = of_batch(1, 1024);
  served.files = {DCULAB_SOURCE_DIR
                  "/tests/data/foreign/sglang/bench_serving_2024-12_h200_llama3.3-70b_rates1-16.jsonl"};
  const auto rates = measured_steps(served).steps;
  REQUIRE(rates.size() > 1);
  CHECK(rates.front().time.value() == Approx(0.013639).epsilon(0.001));  // its median ITL; it has no TPOT
  CHECK(rates.front().batch == 7);                                       // 537 tokens/s of it at a time
  CHECK(rates.back().batch > rates.front().batch);
  CHECK(served.step.stack == "sglang");
  DiagnosisQuestion question = of_batch(1, 1024);
  question.files = {DCULAB_SOURCE_DIR
                    "/tests/data/foreign/vllm/mi50_vllm0.11.0_qwen3-vl-32b-awq_c1_pp8192_detailed.json"};
  question.step.phase = "prefill";
  CHECK_THROWS_WITH(measured_steps(question), ContainsSubstring("no rate of prompts alone"));
}

TEST_CASE("what was not measured, or is not a measurement, is refused with the option") {
  DiagnosisQuestion nothing = of_batch(1, 100);
  CHECK_THROWS_WITH(measured_steps(nothing), ContainsSubstring("nothing was measured; give --tokens-per-second"));
  for (const char* text : {"24ms", "x=24ms", "0=24ms", "8x=24ms", "512=24", "512=0ms", "512=-1ms"}) {
    INFO(text);
    DiagnosisQuestion question = of_batch(1, 100);
    question.at = {text};
    CHECK_THROWS_WITH(measured_steps(question), ContainsSubstring("--at " + std::string(text)));
  }
  DiagnosisQuestion both = of_batch(1, 100);
  both.tokens_per_second = both.prefill_tokens_per_second = 10;
  CHECK_THROWS_AS(measured_steps(both), InputError);
}

// Results of `vllm bench serve` and others, in files of a folder that is removed at the end.
class Results {
 public:
  Results() { std::filesystem::create_directories(folder_); }
  ~Results() { std::filesystem::remove_all(folder_); }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  std::string write_text(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  std::string write(const std::string& name, const std::string& more, double median_itl_ms = 48) const {
    return write_text(name, R"({"backend": "vllm", "duration": 100, "completed": 50, "request_throughput": 0.5, )"
                            R"("output_throughput": 64, "mean_tpot_ms": 50, "median_itl_ms": )" +
                                std::to_string(median_itl_ms) + ", " + more + "}");
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("dculab_measured_step_" + std::to_string(::getpid()));
};
constexpr const char* kLengths = R"("total_input_tokens": 25600, "total_output_tokens": 6400, )";

TEST_CASE("results of two models or two servers are refused, with both files") {
  const Results results;
  const auto refused = [](const std::string& one, const std::string& other, const std::string& what) {
    DiagnosisQuestion question;
    question.step.machine = "mi210";
    question.files = {one, other};
    CHECK_THROWS_WITH(measured_steps(question),
                      ContainsSubstring(what) && ContainsSubstring(one) && ContainsSubstring(other));
  };
  const std::string small = results.write("small.json", std::string(kLengths) + R"("model_id": "Qwen/Qwen3-0.6B")");
  refused(small, results.write("large.json", std::string(kLengths) + R"("model_id": "Qwen/Qwen3-8B")"),
          "the model is qwen3-8b, but qwen3-0.6b");
  const auto of_devices = [&](const std::string& devices) {
    return results.write(
        "tp" + devices + ".json",
        std::string(kLengths) + R"("model_id": "Qwen/Qwen3-0.6B", "tensor_parallel_size": )" + devices);
  };
  refused(of_devices("2"), of_devices("4"), "deployment.tensor_parallel_size is 4, but 2");
  DiagnosisQuestion alike;
  alike.files = {small, of_devices("2")};
  CHECK(measured_steps(alike).steps.size() == 2);
}

TEST_CASE("a file of another model than --model is told") {
  const Results results;
  const auto warnings = [&](const std::string& in_file, const char* model) {
    DiagnosisQuestion question = of_batch(1, 1024);
    question.step.model = model;
    question.files = {results.write("served.json", std::string(kLengths) + R"("model_id": ")" + in_file + R"(")")};
    return measured_steps(question).warnings;
  };
  REQUIRE(warnings("Qwen/Qwen3-8B", "qwen3-0.6b").size() == 1);
  CHECK_THAT(warnings("Qwen/Qwen3-8B", "qwen3-0.6b").front(),
             ContainsSubstring("is of the model Qwen/Qwen3-8B, but is priced as qwen3-0.6b"));
  CHECK(warnings("Qwen/Qwen3-8B-AWQ", "qwen3-8b").empty());
  CHECK(warnings("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b").empty());
}

TEST_CASE("settings that contradict a file are told, and hold") {
  const Results results;
  DiagnosisQuestion question = of_batch(1, 1024);
  question.step.model = "qwen3-0.6b";
  question.step.weights = "gptq-int4";
  question.tensor_parallel_size = 4;
  question.files = {results.write("served.json", std::string(kLengths) + R"("model_id": "Qwen/Qwen3-0.6B", )"
                                                                         R"("tensor_parallel_size": 2)")};
  question.step.stack = "sglang";
  const auto warnings = measured_steps(question).warnings;
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], ContainsSubstring("is of the program vllm, but is priced as sglang"));
  CHECK_THAT(warnings[1], ContainsSubstring("is of tensor parallel size 2, but is priced as 4"));
  CHECK(question.step.stack == "sglang");
  question.step.stack = "vllm-gfx906";
  question.tensor_parallel_size = 2;
  CHECK(measured_steps(question).warnings.empty());
}

TEST_CASE("lengths that a file lacks may be given, and no others") {
  const Results results;
  DiagnosisQuestion question;
  question.step.model = "qwen3-0.6b";
  question.step.stack = "vllm";
  const std::string aiperf = R"({"request_throughput": {"avg": 0.5}, "output_token_throughput": {"avg": 64},
                                 "time_to_first_token": {"unit": "ms", "avg": 90}, "request_count": {"avg": 50},
                                 "inter_token_latency": {"unit": "ms", "avg": 50}})";
  question.files = {results.write_text("lacks.json", aiperf)};
  CHECK_THROWS_WITH(measured_steps(question), ContainsSubstring("give --prompt-tokens and --output-tokens"));
  question.prompt_tokens = 512;
  question.output_tokens = 128;
  CHECK(measured_steps(question).steps.front().context == 512 + 64);
  question.files = {results.write("says.json", std::string(kLengths) + R"("model_id": "Qwen/Qwen3-0.6B")")};
  CHECK_THROWS_WITH(measured_steps(question), ContainsSubstring("--prompt-tokens: no file needs it"));
}

TEST_CASE("what times no decode is left out with a warning, and refused alone") {
  const std::string latency =
      DCULAB_SOURCE_DIR "/tests/data/foreign/vllm/mi300x_vllm2025-08_llama3.1-8b_bs8_in128_out128.json";
  DiagnosisQuestion question = of_batch(1, 1024);
  question.files = {latency};
  CHECK_THROWS_WITH(measured_steps(question), ContainsSubstring("leave it out and give --tpot TIME --batch N"));
  const Results results;
  question.files.push_back(results.write("served.json", std::string(kLengths) + R"("model_id": "llama-3-8b")"));
  const Measurements found = measured_steps(question);
  CHECK(found.steps.size() == 1);
  REQUIRE(found.warnings.size() == 1);
  CHECK_THAT(found.warnings.front(), ContainsSubstring(latency + " is left out"));
}

TEST_CASE("a result without a median time between tokens gives its TPOT, and is told") {
  const Results results;
  DiagnosisQuestion question = of_batch(1, 1024);
  question.step.model = "qwen3-0.6b";
  const std::string model = std::string(kLengths) + R"("model_id": "Qwen/Qwen3-0.6B")";
  question.files = {results.write("has.json", model)};
  const Measurements with = measured_steps(question);
  CHECK(with.warnings.empty());
  CHECK(with.steps.front().time.value() == Approx(0.048));
  question.files = {results.write("lacks.json", model, 0.1)};  // tokens came in bunches
  const Measurements without = measured_steps(question);
  REQUIRE(without.warnings.size() == 1);
  CHECK_THAT(without.warnings.front(), ContainsSubstring("lacks.json has no median ITL"));
  CHECK(without.steps.front().time.value() == Approx(0.05));
}

TEST_CASE("one step that was measured twice must agree but for noise") {
  DiagnosisQuestion question = of_batch(1, 1024);
  question.at = {"128=30ms", "128=90ms"};
  CHECK_THROWS_WITH(measured_steps(question), ContainsSubstring("--at 128=90ms: is 90 ms at batch 1, context 128") &&
                                                  ContainsSubstring("--at 128=30ms is 30 ms there"));
  question.at = {"128=30ms", "128=33ms", "2x128=90ms", "129=90ms"};
  CHECK(measured_steps(question).steps.size() == 4);
  DiagnosisQuestion rate = of_batch(1, 1024);
  rate.tokens_per_second = 10;
  rate.tpot = "10ms";
  CHECK_THROWS_WITH(measured_steps(rate), ContainsSubstring("--tokens-per-second 10 is 100 ms"));
  rate.step.batch = 8;  // one sequence at a time: 100 tokens/s of TPOT 10 ms
  rate.tokens_per_second = 100;
  CHECK(measured_steps(rate).steps.size() == 2);
  rate.tokens_per_second = 8000;  // 1 ms a step
  CHECK_THROWS_AS(measured_steps(rate), InputError);
}

TEST_CASE("more than an hour for a token is a slip of the unit") {
  DiagnosisQuestion question = of_batch(1, 1024);
  for (const char* text : {"1e300s", "3601 s"}) {
    question.tpot = text;
    CHECK_THROWS_WITH(measured_steps(question),
                      ContainsSubstring("--tpot " + std::string(text) + ": is more than an hour for a token"));
  }
  question.tpot = "3599 s";
  CHECK(measured_steps(question).steps.size() == 1);
}

}  // namespace
}  // namespace dculab::study
