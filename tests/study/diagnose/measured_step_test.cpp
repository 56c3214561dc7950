// From what a user types or a tool wrote to times of steps.
#include "study/diagnose/measured_step.hpp"

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
  const MeasuredStep rate = measured_steps(question).front();
  CHECK(rate.time.value() == Approx(0.08));
  CHECK(rate.is_rate);
  CHECK(rate.batch == 8);
  CHECK(rate.context == 500);
  question.tokens_per_second = 0;
  question.tpot = "80ms";
  const MeasuredStep tpot = measured_steps(question).front();
  CHECK(tpot.time.value() == Approx(0.08));
  CHECK_FALSE(tpot.is_rate);
}

TEST_CASE("TPOT at several contexts and batches") {
  DiagnosisQuestion question = of_batch(2, 500);
  question.at = {"512=24ms", "8x1500=66.5 ms"};
  const auto steps = measured_steps(question);
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
  const MeasuredStep step = measured_steps(question).front();
  CHECK(step.phase == Phase::prefill);
  CHECK(step.time.value() == Approx(4));
  CHECK(question.step.phase == "prefill");
}

TEST_CASE("llama-bench and vllm bench serve give steps") {
  DiagnosisQuestion depths = of_batch(1, 1024);
  depths.step.model = "llama-3.2-1b";
  depths.files = {DCULAB_SOURCE_DIR "/tests/data/foreign/llama-bench/strixhalo_b6865_llama3.2-1b_n_depth.jsonl"};
  const auto rows = measured_steps(depths);
  REQUIRE(rows.size() >= 2);
  CHECK(rows.front().context < rows.back().context);
  CHECK(rows.front().time < rows.back().time);
  CHECK(depths.step.stack == "llama.cpp");
  CHECK_THAT(depths.step.weights, ContainsSubstring("int4"));
  DiagnosisQuestion served = of_batch(1, 1024);
  served.files = {DCULAB_SOURCE_DIR
                  "/tests/data/foreign/sglang/bench_serving_2024-12_h200_llama3.3-70b_rates1-16.jsonl"};
  const auto rates = measured_steps(served);
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

}  // namespace
}  // namespace dculab::study
