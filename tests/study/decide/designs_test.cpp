// Designs of a machine and variants of a comparison: what is chosen for each.
#include "study/decide/designs.hpp"

#include <set>
#include <string>

#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/decide/best_variants.hpp"
#include "study/scenario/resolve.hpp"
#include "study/validate/reported_figures.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

const std::string kDesignHead =
    "schema: dculab/scenario/1\nquestion: What suits?\nmodel: llama-3-8b\nmachine: z100\n"
    "workload: {phase: decode, batch: 8, context_tokens: 4000}\n";

[[nodiscard]] config::Scenario design_scenario(const std::string& yaml) {
  return config::read_scenario("s.yaml", config::parse_yaml("s.yaml", kDesignHead + yaml));
}

TEST_CASE("each design gets the block size that suits it, and more bandwidth is never slower") {
  const config::Scenario scenario = design_scenario(R"(sweep:
  machine.memory.DRAM.bandwidth: [512 GB/s, 1 TB/s, 2 TB/s]
  kv_cache.block_size: [1, 16, 64]
choose: [kv_cache.block_size]
)");
  refuse_undecided(scenario);
  const std::vector<config::SweepPoint> points = config::sweep_points(scenario);
  const std::vector<Design> designs = designs_of(scenario, points);
  REQUIRE(designs.size() == 3);
  Seconds before(1e9);
  for (const Design& design : designs) {
    CHECK(design.points.size() == 3);
    CHECK(design.choices.size() == 1);
    const DecidedDesign decided = decide_design(design, resolve_machine(*design.points.front(), "z100"));
    CHECK(decided.choice.block_size != 1);
    CHECK(decided.choice.kv_heads == 8);
    CHECK(decided.seconds <= before);
    CHECK(decided.trust.low <= decided.seconds);
    CHECK(decided.trust.high >= decided.seconds);
    before = decided.seconds;
  }
}

TEST_CASE("a key that is not swept cannot be chosen, nor can all that are") {
  CHECK_THROWS_AS(refuse_undecided(design_scenario("sweep: {machine.memory.DRAM.bandwidth: [1 TB/s]}\n"
                                                   "choose: [kv_cache.block_size]\n")),
                  InputError);
  CHECK_THROWS_AS(refuse_undecided(design_scenario("sweep: {kv_cache.block_size: [1, 16]}\n"
                                                   "choose: [kv_cache.block_size]\n")),
                  InputError);
}

const std::string kCompare = R"(sweep: {workload.batch: [1, 8]}
compare:
  baseline: F16 keys and values
  source: none
  variants:
    - {name: FP8, changes: {kv_cache.dtype: fp8_e4m3}}
    - {name: blocks of one token, changes: {kv_cache.block_size: 1}}
)";

TEST_CASE("the best variant is named for each workload") {
  const config::Scenario scenario = design_scenario(kCompare);
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  const sim::Machine machine = resolve_machine(scenario, "z100");
  const std::vector<ComparedPoint> points = compared_points(scenario, sweep, "z100", machine);
  REQUIRE(points.size() == 2);
  const std::vector<BestVariant> best = best_variants(points, scenario, machine);
  REQUIRE(best.size() == 2);
  for (std::size_t workload = 0; workload < 2; ++workload) {
    const std::vector<VariantCost>& costs = points[workload].costs;
    REQUIRE(costs.size() == 3);
    CHECK(best[workload].choices == sweep[workload].choices);
    CHECK(best[workload].evaluated.size() == 3);
    const VariantCost& fastest = costs[best[workload].verdict.best];
    for (const VariantCost& cost : costs) {
      CHECK(is_run_by(cost, machine));
      CHECK(fastest.figures.at("step_time") <= cost.figures.at("step_time"));
      CHECK(attention_share(cost) > 0);
      CHECK(attention_share(cost) < 1);
      const FigureInterval interval = interval_of(cost, "step_time");
      CHECK(interval.low < cost.figures.at("step_time"));
      CHECK(interval.high > cost.figures.at("step_time"));
    }
    CHECK(change_of("step_time", costs[0], costs[0]) == 0);
  }
}

TEST_CASE("models and formats are asked about, block sizes are chosen") {
  std::string yaml = kCompare;
  yaml.replace(yaml.find("{workload.batch: [1, 8]}"), 24,
               "{model: [llama-3-8b, llama-2-7b], kv_cache.dtype: [f16, int8], kv_cache.block_size: [1, 16, 32]}");
  const config::Scenario scenario = design_scenario(yaml);
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  const sim::Machine machine = resolve_machine(scenario, "z100");
  const std::vector<BestVariant> best =
      best_variants(compared_points(scenario, sweep, "z100", machine), scenario, machine);
  CHECK(best.size() == 4);
  std::set<std::string> models;
  for (const BestVariant& each : best) models.insert(each.choices.front().second);
  CHECK(models.size() == 2);
}

TEST_CASE("a variant that memory has no room for is not the best") {
  const config::Scenario scenario = design_scenario(R"(compare:
  baseline: F16 keys and values
  source: none
  variants:
    - {name: 4096 sequences, changes: {workload.batch: 4096}}
)");
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  const sim::Machine machine = resolve_machine(scenario, "z100");
  const std::vector<ComparedPoint> points = compared_points(scenario, sweep, "z100", machine);
  REQUIRE(points.size() == 1);
  CHECK(points.front().costs[0].has_room);
  CHECK_FALSE(points.front().costs[1].has_room);
  const std::vector<BestVariant> best = best_variants(points, scenario, machine);
  REQUIRE(best.size() == 1);
  CHECK(best.front().verdict.chosen == 0);
  CHECK_FALSE(best.front().verdict.costs[1]);
}

TEST_CASE("a published figure is judged beside what is predicted, and nothing is called the best then") {
  const config::Scenario scenario = design_scenario(kCompare + R"(  reported:
    - {variant: FP8, metric: step_time, change: -10 %}
)");
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  const sim::Machine machine = resolve_machine(scenario, "z100");
  const std::vector<ComparedPoint> points = compared_points(scenario, sweep, "z100", machine);
  CHECK(best_variants(points, scenario, machine).empty());
  const std::vector<ReportedScore> scores = score_reported(points, scenario);
  REQUIRE(scores.size() == 2);
  for (const ReportedScore& score : scores) {
    CHECK(score.predicted == change_of("step_time", *score.variant, score.baseline()));
    CHECK(score.predicted < 0);
    REQUIRE(score.of_change);
    CHECK(score.of_change->low <= score.predicted);
    CHECK(score.of_change->high >= score.predicted);
  }
}

}  // namespace
}  // namespace dculab::study::test
