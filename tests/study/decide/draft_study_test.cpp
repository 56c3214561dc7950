// The points of a study of drafts, and what it advises.
#include "study/decide/draft_study.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario drafted_scenario(const std::string& more) {
  return config::read_scenario(
      "s.yaml",
      config::parse_value("s.yaml",
                          "schema: dculab/scenario/1\nquestion: q\nmodel: llama-2-7b\nmachine: h100-sxm\nstack: vllm\n"
                          "engine:\n  max_num_seqs: 12\n"
                          "  speculative_config: {method: ngram, num_speculative_tokens: 2, acceptance: 0.7}\n" +
                              more));
}

const std::string kDraftedStep = "workload: {phase: decode, batch: 3, context_tokens: 500}\n";
const std::string kFortyRequests = "workload: {requests: 40, prompt_tokens: 300, output_tokens: 101}\n";

DraftPoint point_of(const std::string& more) {
  return draft_point({{}, drafted_scenario(more)}, resolve_machine("h100-sxm"));
}

TEST_CASE("a scenario that drafts is such a study, unless it asks what a search or a simulation answers") {
  CHECK(is_draft_study(drafted_scenario(kDraftedStep)));
  CHECK_FALSE(is_draft_study(drafted_scenario(kFortyRequests)));
  CHECK_FALSE(is_draft_study(
      drafted_scenario(kDraftedStep + "choose: kv_cache.block_size\nsweep: {kv_cache.block_size: [16]}\n")));
}

TEST_CASE("drafts of served requests are judged in the middle of an answer, as many at a time as are served") {
  const DraftPoint step = point_of(kDraftedStep), served = point_of(kFortyRequests);
  CHECK(step.question.context == 500);
  CHECK(step.batch == 3);
  CHECK(served.question.context == 351);
  CHECK(served.batch == 12);
  CHECK(step.shape() == chain_shape(2));
}

TEST_CASE("points that draft nothing, or more than the model's context holds, are refused") {
  const auto swept = config::sweep_points(
      drafted_scenario(kDraftedStep + "sweep: {engine.speculative_config.num_speculative_tokens: [0]}\n"));
  CHECK_THROWS_WITH(draft_point(swept.front(), resolve_machine("h100-sxm")), ContainsSubstring("leave 0 out"));
  CHECK_THROWS_WITH(point_of("workload: {phase: decode, batch: 1, context_tokens: 4095}\n"),
                    ContainsSubstring("4097 tokens, drafts among them"));
}

TEST_CASE("advice is given for each value of the other axes, batch by batch and draft by draft") {
  const DraftStudy study =
      study_drafts(drafted_scenario(kDraftedStep + "sweep:\n  engine.speculative_config.acceptance: [0.2, 0.9]\n"
                                                   "  workload.batch: [1, 64]\n"
                                                   "  engine.speculative_config.num_speculative_tokens: [1, 3, 5]\n"),
                   "h100-sxm");
  REQUIRE(study.points.size() == 12);
  REQUIRE(study.outcomes.size() == 12);
  REQUIRE(study.advice.size() == 2);
  for (std::size_t group = 0; group < 2; ++group) {
    const DraftAdvice& advice = study.advice[group];
    REQUIRE(advice.others.size() == 1);
    CHECK(advice.others.front().second == (group == 0 ? "0.2" : "0.9"));
    REQUIRE(advice.batches.size() == 2);
    REQUIRE(advice.shapes.size() == 3);
    for (std::size_t batch = 0; batch < 2; ++batch) {
      const std::span all(study.outcomes);
      const auto of_batch = all.subspan(group * 6 + batch * 3, 3);
      const auto best = best_draft(of_batch);
      CHECK(advice.batches[batch].batch == (batch == 0 ? 1 : 64));
      REQUIRE(advice.batches[batch].best.has_value() == best.has_value());
      if (best) CHECK(advice.batches[batch].best->shape == of_batch[*best].shape);
    }
  }
  CHECK(study.advice[1].batches[0].best->speed_up > study.advice[0].batches[0].best.value_or(DraftOutcome{}).speed_up);
  CHECK(study.advice[1].shapes[0].break_even.batch >= study.advice[0].shapes[0].break_even.batch);
}

}  // namespace
}  // namespace dculab::study
