// Energy and money as what a search and a simulation are asked for.
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/decide/simulated_choices.hpp"
#include "study/evaluate/simulation.hpp"
#include "study/search/search.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

const std::string kHead = "schema: dculab/scenario/1\nquestion: What costs least?\nmodel: llama-3-8b\n";
const std::string kBare = "machine: z100\n";
const std::string kStated =
    "machine: {name: z100, power.idle: 60 W, power.memory_bound: 200 W, power.compute_bound: 280 W, "
    "price_per_hour: 0.9}\n";
const std::string kStep =
    "workload: {phase: decode, batch: 4, context_tokens: 1000}\nsweep: {workload.batch: [1, 8]}\n";
const std::string kRequests =
    "workload: {requests: 12, prompt_tokens: 200, output_tokens: 16}\nsweep: {engine.max_num_seqs: [1, 8]}\n";
const std::string kLeastJoules = "objective: {minimize: joules_per_output_token}\n";
const std::string kLeastDollars = "objective: {minimize: usd_per_million_tokens}\n";

[[nodiscard]] config::Scenario scenario_of(const std::string& yaml) {
  return config::read_scenario("s.yaml", config::parse_yaml("s.yaml", kHead + yaml));
}

[[nodiscard]] std::vector<Simulation> simulated(const config::Scenario& scenario) {
  const std::vector<config::SweepPoint> points = config::sweep_points(scenario);
  std::vector<SimulatedPoint> asked;
  for (const config::SweepPoint& point : points) asked.push_back({&point, "z100"});
  return simulate_points(asked, {.threads = 1});
}

TEST_CASE("a search for the least energy or money of a machine that does not state them says which key is missing") {
  for (const std::string& workload : {kStep, kRequests}) {
    CHECK_THROWS_WITH(
        SweepSpace(scenario_of(kBare + workload + kLeastJoules)),
        ContainsSubstring("joules_per_output_token follows from figures that the file of machine z100 does "
                          "not state: power.idle, power.memory_bound, power.compute_bound"));
    CHECK_THROWS_WITH(SweepSpace(scenario_of(kBare + workload + kLeastDollars)),
                      ContainsSubstring("price_per_hour; add them there, or --set machine.price_per_hour=..."));
  }
  CHECK_THROWS_WITH(simulated(scenario_of(kBare + kRequests + kLeastDollars)), ContainsSubstring("price_per_hour"));
}

TEST_CASE("more sequences at a time share the energy and the price of a decode step", "[energy]") {
  for (const std::string& objective : {kLeastJoules, kLeastDollars}) {
    const SweepSpace space(scenario_of(kStated + kStep + objective));
    const SearchSummary found = search(space, {.threads = 1});
    REQUIRE_FALSE(found.best().empty());
    const std::vector<double>& figures = found.best().front().figures;
    CHECK(found.best().front().number == 1);
    const auto figure = [&](const char* metric) { return figures[space.metric(metric)]; };
    const double watts = figure("joules_per_output_token") * figure("tokens_per_second");
    CHECK(watts > 60);
    CHECK(watts <= 280);
    CHECK(figure("usd_per_million_tokens") * figure("tokens_per_second") * 3600 / 1e6 == Approx(0.9));
    CHECK(figure("tokens_per_second_per_gpu") == figure("tokens_per_second"));
  }
}

TEST_CASE("figures of served requests come to the watts and the price of the deployment", "[energy]") {
  const config::Scenario scenario =
      scenario_of(kStated + "deployment: {data_parallel_size: 2}\n" + kRequests + kLeastDollars +
                  "pareto: {minimize: [joules_per_output_token], "
                  "maximize: [tokens_per_second_per_user]}\n");
  const std::vector<Simulation> all = simulated(scenario);
  for (const Simulation& each : all) {
    const auto figure = [&each](const char* metric) { return each.figures.at(metric); };
    const double watts = figure("joules_per_output_token") * figure("output_tokens_per_second");
    CHECK(watts == Approx((*each.run.energy / each.run.metrics.duration()).value()));
    CHECK(watts > 2 * 60);
    CHECK(watts <= 2 * 280);
    CHECK(figure("usd_per_million_tokens") * figure("output_tokens_per_second") * 3600 / 1e6 == Approx(2 * 0.9));
    CHECK(figure("tokens_per_second_per_gpu") * 2 == Approx(figure("tokens_per_second")));
    CHECK(figure("tokens_per_second_per_user") * figure("tpot_p50") == Approx(1));
  }
  CHECK(best(all, scenario.objective) == 1);
  CHECK_FALSE(pareto_front(all, scenario.pareto, scenario.objective).empty());
}

TEST_CASE("an energy is compared with a number in joules") {
  const std::string limit = kStated + kRequests + "objective: {maximize: tokens_per_second_per_user, subject_to: ";
  CHECK_THROWS_WITH(scenario_of(limit + "{joules_per_output_token: \"<= 5\"}}\n"),
                    ContainsSubstring("'5' has no unit"));
  const config::Scenario scenario = scenario_of(limit + "{joules_per_output_token: \"<= 500 mJ\"}}\n");
  CHECK(scenario.objective.subject_to.front().value == 0.5);
}

}  // namespace
}  // namespace dculab::study::test
