// KV heads by speed, memory and measured accuracy, the accuracy made up by hand.
#include "study/decide/group_choice.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario group_scenario(const std::string& model, const std::string& heads, const std::string& accuracy) {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: " + model +
                                                  "\nmachine: k100-ai\nweights: f16\n"
                                                  "workload: {requests: 1000, prompt_tokens: 512, output_tokens: 512}\n"
                                                  "sweep: {model.num_key_value_heads: " +
                                                  heads + "}\naccuracy: {model: " + model + ", metric: perplexity, " +
                                                  accuracy + "}\n"));
}

const std::string kHeadCounts = "[4, 32, 16, 8]";  // of 32 query heads: groups of 8, 1, 2 and 4

// Losses by group size.
AccuracyCurve curve_of(const std::map<int, double>& losses) {
  AccuracyCurve curve{.model = "llama-2-7b", .metric = "perplexity", .by_group = {}};
  for (const auto& [group, loss] : losses)
    curve.by_group[group] = {.figure = 5 * (1 + loss), .loss = loss, .method = "m"};
  return curve;
}

GroupChoice chosen_with(const std::map<int, double>& losses, const std::string& accuracy) {
  return choose_group(group_scenario("llama-2-7b", kHeadCounts, accuracy), curve_of(losses),
                      resolve_machine("k100-ai"));
}

// The most KV heads of those that may be had that are within `given_up` of the fastest of these.
std::size_t expected(const GroupChoice& choices, const std::vector<std::size_t>& allowed, double given_up) {
  double best = 0;
  for (const std::size_t index : allowed) best = std::max(best, choices.evaluated[index].figure);
  for (const std::size_t index : allowed)
    if (best / choices.evaluated[index].figure - 1 <= given_up) return index;
  return choices.evaluated.size();
}

const std::map<int, double> kLosses{{1, 0}, {2, 0.01}, {4, 0.03}, {8, 0.2}};

TEST_CASE("choices stand from the most KV heads to the fewest, each with its speed and what it loses") {
  const GroupChoice choices = chosen_with(kLosses, "tolerance: 5 %, speed_tie: 5 %");
  CHECK(choices.machine == "k100-ai");
  REQUIRE(choices.costs.size() == 4);
  const std::vector<int> heads{32, 16, 8, 4};
  const std::vector<double> losses{0, 0.01, 0.03, 0.2};
  for (std::size_t index = 0; index < 4; ++index) {
    CAPTURE(index);
    CHECK(choices.costs[index].model.heads().num_key_value_heads == heads[index]);
    CHECK(choices.evaluated[index].value == std::to_string(heads[index]));
    CHECK(choices.evaluated[index].figure == choices.costs[index].figures.at("output_tokens_per_second"));
    CHECK(choices.losses[index] == losses[index]);
    CHECK(kv_bytes(choices.costs[index]).value() == 2.0 * 2 * 128 * 32 * heads[index]);
    if (index > 0) CHECK(choices.faster(index, index - 1) > 0);  // more sequences fit, and each loads less
  }
  CHECK(choices.front == std::vector<bool>{true, true, true, true});
}

TEST_CASE("of what loses no more than is tolerated the most KV heads hardly slower than the fastest are kept") {
  const GroupChoice strict = chosen_with(kLosses, "tolerance: 5 %, speed_tie: 0 %");
  REQUIRE(strict.verdict);
  CHECK(strict.verdict->chosen == expected(strict, {0, 1, 2}, 0.01));  // what prices resolve
  CHECK(strict.verdict->best == 2);
  CHECK_FALSE(strict.verdict->costs[3].has_value());
  CHECK(strict.refused == 3);  // is faster, and loses a fifth

  const GroupChoice generous = chosen_with(kLosses, "tolerance: 5 %, speed_tie: 500 %");
  REQUIRE(generous.verdict);
  CHECK(generous.verdict->chosen == 0);
  CHECK(generous.refused == 3);

  const GroupChoice careless = chosen_with(kLosses, "tolerance: 30 %, speed_tie: 0 %");
  REQUIRE(careless.verdict);
  CHECK(careless.verdict->best == 3);
  CHECK(careless.verdict->chosen == expected(careless, {0, 1, 2, 3}, 0.01));
  CHECK_FALSE(careless.refused.has_value());
}

TEST_CASE("KV heads whose accuracy was not measured are not chosen, and stand on no front") {
  const GroupChoice choices = chosen_with({{1, 0}, {2, 0.01}, {8, 0.2}}, "tolerance: 5 %, speed_tie: 0 %");
  CHECK_FALSE(choices.losses[2].has_value());
  CHECK(choices.front == std::vector<bool>{true, true, false, true});
  REQUIRE(choices.verdict);
  CHECK(choices.verdict->best == 1);
  CHECK(choices.verdict->chosen == expected(choices, {0, 1}, 0.01));
  CHECK(choices.refused == 3);
  CHECK_FALSE(chosen_with({{8, 0.2}}, "tolerance: 5 %").verdict.has_value());
}

TEST_CASE("where no choice fits in memory there is none, and no input sensitivity") {
  const GroupChoice choices = choose_group(group_scenario("llama-13b", "[40, 20]", "tolerance: 5 %"), curve_of(kLosses),
                                           resolve_machine("mi50"));
  for (const VariantCost& cost : choices.costs) CHECK_FALSE(cost.fits());
  CHECK(choices.evaluated[0].figure == 0);
  CHECK_FALSE(choices.verdict.has_value());
  CHECK_FALSE(input_sensitivities_of(choices).has_value());
  const auto input_sensitivities = input_sensitivities_of(chosen_with(kLosses, "tolerance: 5 %"));
  REQUIRE(input_sensitivities);
  CHECK_FALSE(input_sensitivities->empty());
}

TEST_CASE("only KV heads are weighed against accuracy, of requests that are served") {
  config::Scenario scenario = group_scenario("llama-2-7b", kHeadCounts, "tolerance: 5 %");
  CHECK_NOTHROW(require_swept_heads(scenario));
  scenario.workload.kind = config::WorkloadKind::step;
  CHECK_THROWS_WITH(require_swept_heads(scenario), ContainsSubstring("speed is that of the batch that fits"));
  scenario.sweep.front().key = "kv_cache.block_size";
  CHECK_THROWS_WITH(require_swept_heads(scenario), ContainsSubstring("weighs KV heads"));
}

TEST_CASE("a study has the curve that its scenario names, and a choice for each machine") {
  const config::Scenario scenario = config::read_scenario_file(find_scenario("group_size").string());
  const GroupStudy study = study_groups(scenario, {resolve_machine("z100"), resolve_machine("h100-sxm")});
  CHECK(study.curve.model == "dculab-tiny");
  CHECK(study.curve.metric == "perplexity");
  CHECK(study.curve.by_group.at(1).loss == 0);
  REQUIRE(study.machines.size() == 2);
  CHECK(study.machines[0].machine == "z100");
  CHECK(study.machines[1].machine == "h100-sxm");
  for (const GroupChoice& choices : study.machines)
    if (choices.verdict) CHECK(*choices.losses[choices.verdict->chosen] <= scenario.accuracy->tolerance);
}

}  // namespace
}  // namespace dculab::study
