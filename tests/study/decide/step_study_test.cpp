// A sweep of steps on one machine: what each point costs, and what the sweep decides.
#include "study/decide/step_study.hpp"

#include <algorithm>
#include <string>

#include "config/scenario_document.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const std::string kDecodeOf32 = "workload: {phase: decode, batch: 32, context_tokens: 1000}\n";

config::Scenario step_scenario(const std::string& more) {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\n" + more));
}

StepStudy studied(const std::string& more, double within = 0) {
  const config::Scenario scenario = step_scenario(more);
  return study_steps(scenario, resolve_machine(scenario, scenario.machines.front()), within);
}

TEST_CASE("every point has its figures, and a small sweep its ops") {
  const StepStudy study = studied("machine: z100\n" + kDecodeOf32 +
                                  "sweep: {model.num_key_value_heads: [8, 4], kv_cache.block_size: [1, 16]}\n");
  CHECK(study.model == "llama-3-8b");
  REQUIRE(study.points.size() == 4);
  REQUIRE(study.details.size() == 4);
  for (std::size_t index = 0; index < 4; ++index) {
    CAPTURE(index);
    const StepFigures& point = study.points[index];
    CHECK(point.choices.size() == 2);
    CHECK(point.batch == 32);
    CHECK(point.seconds == study.details[index].price.seconds);
    CHECK(point.tokens_per_second == Approx(32 / point.seconds.value()));
    REQUIRE(point.trust);
    CHECK(point.trust->low < point.seconds);
    CHECK(point.trust->high > point.seconds);
    CHECK_FALSE(point.bound.empty());
  }
  CHECK(study.points[2].max_sequences > study.points[0].max_sequences);  // half the KV heads
  CHECK_FALSE(study.input_sensitivities.empty());
}

TEST_CASE("without accuracy the model's own KV heads are kept, and it is open what fewer of them cost") {
  const StepStudy study = studied("machine: z100\n" + kDecodeOf32 +
                                  "sweep: {model.num_key_value_heads: [8, 4], kv_cache.block_size: [1, 16]}\n");
  REQUIRE(study.decision);
  CHECK(study.decision->choice == sim::Choice{8, 16});
  CHECK(study.leaves_heads_open());
  CHECK(study.choices.size() == 4);
  CHECK(study.causes.size() == 4);
  CHECK(study.causes.at({4, 16}).kv_bytes < study.causes.at({8, 16}).kv_bytes);
  CHECK_FALSE(study.sensitivity.has_value());
  CHECK_FALSE(studied("machine: z100\n" + kDecodeOf32 + "sweep: {kv_cache.block_size: [1, 16]}\n").leaves_heads_open());
}

TEST_CASE("accuracy that was measured closes the question") {
  const StepStudy study = studied("machine: z100\n" + kDecodeOf32 +
                                  "sweep: {model.num_key_value_heads: [8, 4]}\naccuracy: {model: t5-xxl}\n");
  REQUIRE(study.question.accuracy);
  CHECK_FALSE(study.leaves_heads_open());
}

TEST_CASE("one point leaves nothing to choose") {
  const StepStudy study = studied("machine: z100\n" + kDecodeOf32, 2);
  CHECK(study.points.size() == 1);
  CHECK(study.choices.size() == 1);
  CHECK_FALSE(study.decision.has_value());
  CHECK_FALSE(study.sensitivity.has_value());
}

TEST_CASE("asked for, the figures that change the recommendation are found within their range") {
  const StepStudy study = studied("machine: z100\n" + kDecodeOf32 + "sweep: {kv_cache.block_size: [1, 64]}\n", 3);
  REQUIRE(study.sensitivity);
  CHECK(study.sensitivity->within == 3);
  CHECK(study.sensitivity->choice == "8 KV heads, block " + std::to_string(study.decision->choice.block_size));
  for (const sim::Sensitivity& figure : study.sensitivity->figures)
    for (const auto& flip : {figure.down, figure.up})
      if (flip) {
        CHECK(flip->factor <= 3.001);
        CHECK(flip->factor >= 1 / 3.001);
        CHECK(flip->choice != study.sensitivity->choice);
      }
}

TEST_CASE("block sizes that the stack's kernels do not take are left out, and its choice is among the others") {
  const StepStudy study =
      studied("machine: k100-ai\nstack: vllm\n" + kDecodeOf32 + "sweep: {kv_cache.block_size: [16, 64, 128]}\n");
  CHECK(study.left_out == std::vector<std::string>{"16"});
  CHECK(study.points.size() == 2);
  REQUIRE(study.decision);
  CHECK(study.decision->choice.block_size >= 64);
}

TEST_CASE("what our own kernels do not do is told once for points that are alike in it") {
  const StepStudy study = studied("machine: z100\nweights: f16\nkv_cache: {dtype: f32}\n" + kDecodeOf32 +
                                  "sweep: {workload.batch: [1, 2, 4]}\n");
  CHECK(std::ranges::count_if(study.unserved, [](const std::string& what) {
          return what.find("kv_cache_dtype f32 is not supported on the GPU") != std::string::npos;
        }) == 1);
}

TEST_CASE("models are compared, not recommended, and the answer stands alone") {
  const StepStudy study = studied("machine: k100-ai\n" + kDecodeOf32 +
                                  "sweep: {model: [llama-3-8b, llama-2-7b], workload.batch: [1, 8]}\n");
  REQUIRE(study.models);
  CHECK(study.models->batches == std::vector{1, 8});
  REQUIRE(study.models->comparisons.size() == 1);
  REQUIRE(study.models->comparisons[0].models.size() == 2);
  for (const SweptModel& model : study.models->comparisons[0].models) {
    CHECK(model.steps.size() == 2);
    CHECK_FALSE(model.evaluated_step);
    CHECK_FALSE(model.compared.step_time);
  }
  CHECK_FALSE(study.decision.has_value());
  CHECK_FALSE(study.leaves_heads_open());
}

}  // namespace
}  // namespace dculab::study
