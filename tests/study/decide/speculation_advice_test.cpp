// What drafts are worth: by prices, and by times that somebody measured.
#include "study/decide/speculation_advice.hpp"

#include "config/scenario_document.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario advice_scenario(const std::string& config) {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml",
                                    "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\nmachine: h100-sxm\n"
                                    "stack: vllm\nworkload: {phase: decode, batch: 1, context_tokens: 500}\n"
                                    "engine: {speculative_config: " +
                                        config + "}\n"));
}

DraftQuestion advice_question(const std::string& config) {
  const config::Scenario scenario = advice_scenario(config);
  const sim::Machine machine = resolve_machine(scenario, "h100-sxm");
  const ModelShape model = resolve_model(scenario);
  const EngineOptions options = resolve_options(scenario, model, machine);
  return draft_question(scenario, machine, model, model, options, 500).value();
}

DraftQuestion by_a_model() {
  return advice_question("{method: draft_model, model: llama-3.2-1b, num_speculative_tokens: 4, acceptance: 0.8}");
}

TEST_CASE("measured times are judged as they are") {
  const DraftQuestion question = by_a_model();
  const DraftedTimes measured{.plain = Seconds(0.010), .verify = Seconds(0.011), .drafting = Seconds(0.004)};
  const DraftOutcome outcome = judge(question, chain_shape(4), 2, measured);
  CHECK_THAT(outcome.tokens, WithinRel(sim::expected_tokens_of_chain(0.8, 4), 1e-12));
  CHECK_THAT(outcome.speed_up, WithinRel(outcome.tokens * 0.010 / 0.015, 1e-12));
  CHECK(outcome.low == outcome.speed_up);
  CHECK(outcome.high == outcome.speed_up);
}

TEST_CASE("a large batch leaves less for drafts to gain, and fewer tokens to draft") {
  const DraftQuestion question = by_a_model();
  double last = 1e9;
  int last_tokens = 8;
  for (const int batch : {1, 8, 64, 512}) {
    const DraftCandidates candidates = judge_candidates(question, batch);
    for (const DraftOutcome& outcome : candidates.outcomes) {
      CHECK(outcome.low < outcome.speed_up);
      CHECK(outcome.speed_up < outcome.high);
      CHECK(outcome.times.verify >= outcome.times.plain);
      CHECK(outcome.times.drafting > Seconds{});
    }
    const auto best = best_draft(candidates.outcomes);
    const double speed_up = best ? candidates.outcomes[*best].speed_up : 1;
    const int tokens = best ? candidates.outcomes[*best].shape.num_tokens() : 0;
    INFO(batch);
    CHECK(speed_up <= last * (1 + 1e-9));
    CHECK(tokens <= last_tokens);
    last = speed_up;
    last_tokens = tokens;
  }
}

TEST_CASE("drafts pay up to the break-even batch, and not beyond") {
  const DraftQuestion question = by_a_model();
  const BreakEven most = break_even(question, chain_shape(4));
  REQUIRE(most.batch > 0);
  const DraftOutcome there = judge(question, chain_shape(4), most.batch);
  const DraftOutcome beyond = judge(question, chain_shape(4), most.batch + 1);
  CHECK(there.speed_up > 1);
  CHECK(there.fits);
  CHECK((most.is_all ? !beyond.fits : beyond.speed_up <= 1));
  DraftQuestion never = question;
  never.speculation.acceptance.by_depth = {0.01};
  CHECK(break_even(never, chain_shape(4)) == BreakEven{});
}

TEST_CASE("of drafts that are alike the one with the fewest tokens is best, and none that does not pay") {
  const auto outcome = [](int tokens, double speed_up, bool fits = true) {
    DraftOutcome each;
    each.shape = chain_shape(tokens);
    each.speed_up = speed_up;
    each.fits = fits;
    return each;
  };
  CHECK(best_draft(std::vector{outcome(2, 1.50), outcome(3, 1.56), outcome(4, 1.561)}) == 1U);
  CHECK(best_draft(std::vector{outcome(2, 1.50), outcome(3, 1.60, false)}) == 0U);
  CHECK_FALSE(best_draft(std::vector{outcome(2, 0.9), outcome(3, 1.0)}).has_value());
}

TEST_CASE("a tree of Medusa's guesses yields more tokens than its likeliest chain, for a longer step") {
  const DraftQuestion question =
      advice_question("{method: medusa, speculative_token_tree: 3x2, acceptance: {by_rank: [0.6, 0.3, 0.1]}}");
  const DraftOutcome tree = judge(question, question.options.speculative_config.shape, 4);
  const DraftOutcome chain = judge(question, chain_shape(2), 4);
  CHECK(tree.tokens > chain.tokens);
  CHECK(tree.times.verify >= chain.times.verify);
}

}  // namespace
}  // namespace dculab::study
