// Variants against their baseline on each machine, and what was published about them.
#include "study/answer/comparison.hpp"

#include <string>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario compared(const std::string& more) {
  return config::read_scenario(
      "s.yaml",
      config::parse_value("s.yaml",
                          "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\nmachines: [z100, "
                          "k100-ai]\nweights: f16\nworkload: {phase: decode, batch: 32, context_tokens: 1000}\n"
                          "sweep: {workload.batch: [32, 64]}\ncompare:\n  baseline: as it is\n  variants:\n"
                          "    - {name: fewer, changes: {model.num_key_value_heads: 4}}\n" +
                              more));
}

TEST_CASE("each machine has the baseline and the variants at every point, and the best of them") {
  const config::Scenario scenario = compared("");
  const ComparisonStudy study = compare_variants(scenario, scenario.machines);
  REQUIRE(study.sweep.size() == 2);
  REQUIRE(study.machines.size() == 2);
  CHECK(study.machines[0].machine.name == "z100");
  CHECK(study.machines[1].machine.name == "k100-ai");
  for (const Comparison& comparison : study.machines) {
    CAPTURE(comparison.machine.name);
    REQUIRE(comparison.points.size() == 2);
    for (std::size_t point = 0; point < 2; ++point) {
      const ComparedPoint& each = comparison.points[point];
      CHECK(each.point == &study.sweep[point]);
      REQUIRE(each.costs.size() == 2);
      CHECK(each.costs[0].model.heads().num_key_value_heads == 8);
      CHECK(each.costs[1].model.heads().num_key_value_heads == 4);
      CHECK(change_of("step_time", each.costs[1], each.costs[0]) < 0);
    }
    CHECK(comparison.scores.empty());
    REQUIRE(comparison.best.size() == 2);  // for each batch
    for (const BestVariant& best : comparison.best) CHECK(best.verdict.best == 1);
    REQUIRE(comparison.input_sensitivities);
    CHECK_FALSE(comparison.input_sensitivities->empty());
  }
}

TEST_CASE("a published figure is judged where it belongs, and no best is named then") {
  const config::Scenario scenario = compared(
      "  source: somebody\n  reported: [{variant: fewer, metric: step_time, change: -10 %, at: "
      "{workload.batch: 64}}]\n");
  const ComparisonStudy study = compare_variants(scenario, {"z100"});
  const Comparison& comparison = study.machines.at(0);
  REQUIRE(comparison.scores.size() == 1);
  const ReportedScore& score = comparison.scores.front();
  CHECK(score.point == &comparison.points[1]);
  CHECK(score.predicted == change_of("step_time", comparison.points[1].costs[1], comparison.points[1].costs[0]));
  CHECK(comparison.best.empty());
}

TEST_CASE("a speed-up is one of drafts") {
  CHECK_THROWS_WITH(compare_variants(compared("  source: somebody\n  reported: [{variant: fewer, metric: speed_up, "
                                              "value: 2}]\n"),
                                     {"z100"}),
                    ContainsSubstring("a speed_up is that of drafts"));
}

}  // namespace
}  // namespace dculab::study
