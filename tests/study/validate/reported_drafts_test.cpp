// Published speed-ups beside the closed form and the simulator.
#include "study/validate/reported_drafts.hpp"

#include "config/scenario_document.hpp"
#include "sim/speculation/acceptance.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

std::vector<ReportedDraft> reported_of(const std::string& workload) {
  const config::Scenario scenario = config::read_scenario(
      "s.yaml",
      config::parse_value("s.yaml",
                          "schema: dculab/scenario/1\nquestion: q\nmodel: llama-2-7b\nmachine: h100-sxm\nstack: vllm\n"
                          "engine:\n  max_num_seqs: 1\n"
                          "  speculative_config: {method: ngram, num_speculative_tokens: 4, acceptance: 0.8}\n"
                          "workload: " +
                              workload +
                              "\ncompare:\n  baseline: no drafts\n  source: nobody\n  variants:\n"
                              "    - {name: often, changes: {engine.speculative_config.acceptance: 0.9}}\n"
                              "    - {name: seldom, changes: {engine.speculative_config.acceptance: 0.4}}\n"
                              "  reported: [{variant: seldom, metric: speed_up, value: 1.5}]\n"));
  return reported_drafts(scenario, "h100-sxm");
}

TEST_CASE("a variant's rate and cost give the closed form, beside what somebody reported of it") {
  const std::vector<ReportedDraft> drafts = reported_of("{phase: decode, batch: 1, context_tokens: 500}");
  REQUIRE(drafts.size() == 2);
  CHECK(drafts[0].variant == "often");
  CHECK_THAT(drafts[0].rate, WithinRel(0.9, 1e-9));
  CHECK_THAT(drafts[1].rate, WithinRel(0.4, 1e-9));
  CHECK_FALSE(drafts[0].reported.has_value());
  CHECK(drafts[1].reported == 1.5);
  for (const ReportedDraft& draft : drafts) {
    const DraftedTimes& times = draft.outcome.times;
    CHECK_THAT(draft.cost, WithinAbs(times.drafting / times.plain / 4, 1e-12));
    CHECK_THAT(draft.closed_form, WithinRel(sim::lecture_speed_up(draft.rate, 4, draft.cost), 1e-12));
    CHECK(draft.closed_form >= draft.outcome.speed_up);  // it takes verifying to last no longer than a plain step
    CHECK_FALSE(draft.simulated.has_value());
  }
}

TEST_CASE("requests are simulated with drafts and without") {
  for (const ReportedDraft& draft :
       reported_of("{requests: 4, prompt_tokens: 100, output_tokens: 200, arrival: all_at_once}")) {
    INFO(draft.variant);
    REQUIRE(draft.simulated.has_value());
    CHECK_THAT(*draft.simulated, WithinRel(draft.outcome.speed_up, 0.1));
  }
}

}  // namespace
}  // namespace dculab::study
