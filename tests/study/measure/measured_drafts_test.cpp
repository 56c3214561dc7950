// What drafts were worth in runs beside what was predicted. No time is judged.
#include "study/measure/measured_drafts.hpp"

#include <string>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const std::string kForced = "rejection_sample_method: synthetic, synthetic_acceptance_rates: [0.8]";

config::Scenario drafted_scenario(const std::string& config, const std::string& sweep = "") {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml",
                                    "schema: dculab/scenario/1\nquestion: q\nmodel: dculab-tiny\nmachine: host\n"
                                    "engine: {speculative_config: {" +
                                        config +
                                        "}}\nkv_cache: {block_size: 16}\n"
                                        "workload: {phase: decode, batch: 4, context_tokens: 64}\n" +
                                        sweep));
}

config::Scenario forced(const std::string& sweep = "") {
  return drafted_scenario("method: draft_model, model: dculab-tiny-draft, num_speculative_tokens: 2, " + kForced,
                          sweep);
}

// A machine that no machine beats, so that no step is refused.
sim::Machine unbeaten() {
  sim::Machine machine = resolve_machine("x86-server");
  for (auto& [dtype, peak] : machine.peaks) peak.vector = 1000.0 * peak.vector;
  for (sim::MemoryLevel& level : machine.memory) level.bandwidth = 1000.0 * level.bandwidth;
  return machine;
}

std::vector<int> batches_of(const std::vector<engine::BenchPoint>& steps) {
  std::vector<int> batches;
  for (const engine::BenchPoint& step : steps) batches.push_back(static_cast<int>(step.batch.sequences.size()));
  return batches;
}

TEST_CASE("drafts are measured that a draft model makes and that are accepted as asked") {
  CHECK_NOTHROW(require_measurable_drafts(forced()));
  CHECK_THROWS_WITH(require_measurable_drafts(drafted_scenario("method: ngram, num_speculative_tokens: 2, " + kForced)),
                    ContainsSubstring("runs method draft_model at every point"));
  CHECK_THROWS_WITH(require_measurable_drafts(drafted_scenario(
                        "method: draft_model, model: dculab-tiny-draft, num_speculative_tokens: 2, acceptance: 0.8")),
                    ContainsSubstring("agree on nothing"));
  const config::Scenario swept =
      forced("sweep: {engine.speculative_config.rejection_sample_method: [synthetic, strict]}\n");
  CHECK_THROWS_WITH(measurable_drafts(swept, unbeaten()), ContainsSubstring("agree on nothing"));
  const config::Scenario none = forced("sweep: {engine.speculative_config.num_speculative_tokens: [2, 0]}\n");
  CHECK_THROWS_WITH(measurable_drafts(none, unbeaten()), ContainsSubstring("leave 0 out"));
}

TEST_CASE("what calibrates are steps without drafts of as many rows as the study's") {
  const std::vector<DraftPoint> points =
      measurable_drafts(forced("sweep:\n  workload.context_tokens: [64, 96]\n"
                               "  engine.speculative_config.num_speculative_tokens: [1, 4]\n"),
                        unbeaten());
  REQUIRE(points.size() == 4);
  const ModelShape& model = points.front().question.model;
  const auto target = plain_steps(points, model, PairRole::target);  // up to 4 x (1 + 4) rows
  CHECK(batches_of(target) == std::vector<int>{1, 2, 4, 8, 16, 32, 1, 2, 4, 8, 16, 32});
  CHECK(batches_of(plain_steps(points, model, PairRole::draft)) == std::vector<int>{1, 2, 4, 8, 1, 2, 4, 8});
  for (const engine::BenchPoint& step : target) {
    CHECK_FALSE(step.options.speculative_config.enabled());
    CHECK(step.batch.sequences.front().phase == Phase::decode);
    CHECK(step.batch.num_tokens() == static_cast<int>(step.batch.sequences.size()));
  }
  CHECK(target.front().batch.sequences.front().context_tokens() == 64);
  CHECK(target.back().batch.sequences.front().context_tokens() == 96);
  const std::vector<DraftPoint> one = measurable_drafts(forced("sweep: {workload.batch: [1]}\n"), unbeaten());
  CHECK(batches_of(plain_steps(one, model, PairRole::target)) == std::vector<int>{1, 2, 4, 8});
}

TEST_CASE("predicted speed-ups are of the tokens that were accepted, and errors of their ratios") {
  std::vector<ComparedDraft> points(4);
  for (ComparedDraft& point : points) {
    point.predicted.tokens = 3;
    point.predicted.speed_up = 2;
    point.measured.tokens = 3.3;
    point.measured.speed_up = 2.2;
  }
  CHECK_THAT(points[0].predicted_speed_up(), WithinRel(2.2, 1e-12));
  CHECK_THAT(points[0].ratio(), WithinRel(1.0, 1e-12));
  points[1].measured.speed_up = 2.2 / 1.05;
  points[2].measured.speed_up = 2.2 / 0.85;
  points[3].measured.speed_up = 2.2 / 1.5;
  const DraftErrors errors = errors_of(points);
  CHECK(errors.count == 4);
  CHECK(errors.within_10 == 2);
  CHECK_THAT(errors.median, WithinRel(0.1, 1e-9));
  CHECK_THAT(errors.largest, WithinRel(0.5, 1e-9));
}

TEST_CASE("a pair of models runs with drafts and without, and is predicted by a fit to steps without") {
  const sim::Machine host = unbeaten();
  const DraftPair models{.target = engine::load_weights(find_model("dculab-tiny")),
                         .draft = engine::load_weights(find_model("dculab-tiny-draft"))};
  const engine::BenchOptions options{.threads = 1, .repeats = 2, .warm_up = 0};
  int reported = 0;
  const MeasuredDrafts drafts =
      measure_drafts(measurable_drafts(forced("sweep: {workload.batch: [1, 2]}\n"), host), models, host, options,
                     [&reported](const std::string&, double) { ++reported; });
  CHECK(reported > 0);
  CHECK(drafts.refused.empty());
  CHECK(drafts.plain.steps.size() == 16);  // before and after
  CHECK_THAT(drafts.machine.sources.at("sustained.dram_bandwidth"),
             ContainsSubstring("16 measured steps without drafts"));
  REQUIRE(drafts.points.size() == 2);
  for (const ComparedDraft& point : drafts.points) {
    CHECK(point.choices.front().first == "workload.batch");
    CHECK(point.measured.tokens >= 1);
    CHECK(point.measured.tokens <= 3);
    CHECK(point.measured.speed_up > 0);
    CHECK(point.predicted.times.plain > Seconds{});
    CHECK(point.ratio() > 0);
  }
}

TEST_CASE("a draft model is predicted with the weights that run, not with its checkpoint's") {
  const std::vector<DraftPoint> points = measurable_drafts(forced("sweep: {workload.batch: [1]}\n"), unbeaten());
  const DraftQuestion& asked = points.front().question;
  const engine::ModelWeights target = engine::load_weights(find_model("dculab-tiny"));
  const auto drafting = [&](const DraftQuestion& question) {
    return judge(question, points.front().shape(), 1).times.drafting;
  };
  const DraftPair same{.target = target, .draft = engine::load_weights(find_model("dculab-tiny-draft"))};
  CHECK(drafting(as_it_runs(asked, same)) == drafting(asked));
  CHECK(drafting(as_it_runs(asked, {.target = target, .draft = target})) > drafting(asked));
}

TEST_CASE("a machine is not fitted to steps that cannot be true") {
  sim::Machine slow = resolve_machine("x86-server");
  for (sim::MemoryLevel& level : slow.memory) level.bandwidth = BytesPerSecond(1e3);
  const DraftPair models{.target = engine::load_weights(find_model("dculab-tiny")),
                         .draft = engine::load_weights(find_model("dculab-tiny-draft"))};
  CHECK_THROWS_WITH(measure_drafts(measurable_drafts(forced(), slow), models, slow,
                                   {.threads = 1, .repeats = 1, .warm_up = 0}, [](const std::string&, double) {}),
                    ContainsSubstring("only 0 measured steps can be used, 8 are needed to calibrate"));
}

}  // namespace
}  // namespace dculab::study
