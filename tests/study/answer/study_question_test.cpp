// What a scenario asks of a study, and what is refused before any work.
#include "study/answer/study_question.hpp"

#include <string>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/study/workloads.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario llama_2_scenario(const std::string& more) {
  return config::read_scenario(
      "s.yaml", config::parse_value(
                    "s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: llama-2-7b\nmachine: z100\n" + more));
}

const std::string kSizes = "sweep: {kv_cache.block_size: [16, 32]}\n";
const std::string kHeadSweep = "sweep: {model.num_key_value_heads: [32, 8]}\n";
const std::string kDrafts =
    "engine: {speculative_config: {method: ngram, num_speculative_tokens: 2, acceptance: 0.7}}\n";
const std::string kCompare =
    "compare:\n  baseline: 16\n  variants:\n    - {name: \"32\", changes: {kv_cache.block_size: 32}}\n";
const std::string kAccuracy = "accuracy: {model: llama-2-7b, metric: perplexity}\n";
const std::string kObjective = "objective: {maximize: tokens_per_second}\n";

StudyKind kind(const std::string& more) { return kind_of(llama_2_scenario(more)); }

TEST_CASE("what a scenario has besides its workload says what kind of question it asks") {
  CHECK(kind(kStep + kSizes) == StudyKind::steps);
  CHECK(kind(kStep + kHeadSweep + kAccuracy) == StudyKind::steps);
  CHECK(kind(kRequests + kHeadSweep + kAccuracy) == StudyKind::groups);
  CHECK(kind(kStep + kCompare) == StudyKind::comparison);
  CHECK(kind(kStep + kDrafts) == StudyKind::drafts);
  CHECK(kind(kStep + kDrafts + kCompare) == StudyKind::drafts);
  CHECK(kind(kStep + kSizes + kObjective) == StudyKind::search);
  CHECK(kind(kRequests + kDrafts + kObjective) == StudyKind::search);
  CHECK(kind(kStep + kSizes + "constraints: [step_time <= 50 ms]\n") == StudyKind::search);
  const std::string machines = "sweep: {machine.memory.DRAM.bandwidth: [1 TB/s, 2 TB/s], kv_cache.block_size: [16]}\n";
  CHECK(kind(kStep + machines) == StudyKind::search);
  CHECK(kind(kStep + machines + "choose: [kv_cache.block_size]\n") == StudyKind::designs);
}

TEST_CASE("requests are served in real time, unless a comparison or accuracy has a closed form for them") {
  CHECK(is_served(llama_2_scenario(kRequests)));
  CHECK_FALSE(is_served(llama_2_scenario(kStep)));
  CHECK_FALSE(is_served(llama_2_scenario(kRequests + kCompare)));
  CHECK_FALSE(is_served(llama_2_scenario(kRequests + kHeadSweep + kAccuracy)));
}

TEST_CASE("what nothing answers is refused") {
  const auto refused = [](const std::string& more, const char* why) {
    CAPTURE(more);
    CHECK_THROWS_WITH(refuse_unanswered(llama_2_scenario(more)), ContainsSubstring(why));
  };
  for (const std::string& answered : {kStep + kSizes, kStep + kCompare, kStep + kDrafts, kRequests + kCompare,
                                      kRequests + "objective: {maximize: output_tokens_per_second}\n"})
    CHECK_NOTHROW(refuse_unanswered(llama_2_scenario(answered)));
  refused(kRequests, "requests are served by `dculab simulate`");
  refused(kStep + "sweep: {engine.batching: [continuous, static]}\n", "changes no predicted time of a step");
  refused(kStep + kDrafts + kObjective, "a search over steps");
  refused(kRequests + kDrafts + kHeadSweep + kAccuracy, "a study with choose or accuracy");
  refused(kStep + kSizes + "choose: [kv_cache.block_size]\n", "choose: ");
  refused(kRequests + "objective: {maximize: max_sequences}\n", "no metric of served requests");
}

}  // namespace
}  // namespace dculab::study
