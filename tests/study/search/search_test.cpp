// Searches: the best of all points, whole, in parts, or stopped and gone on with.
#include "study/search/search.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "study/search/point_pricer.hpp"
#include "study/search/search_answer.hpp"
#include "study/search/shards.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

const std::string kSearchHead =
    "schema: dculab/scenario/1\nquestion: What is best?\nmodel: llama-3-8b\nmachine: z100\n";
const std::string kSteps = kSearchHead + R"(workload: {phase: decode, batch: 16, context_tokens: 2000}
sweep:
  workload.batch: [1, 2, 4, 8, 16, 32]
  kv_cache.block_size: [1, 16, 64]
  model.num_key_value_heads: [8, 2]
objective: {maximize: tokens_per_second, subject_to: {step_time: "<= 40 ms"}}
pareto: {minimize: [step_time], maximize: [tokens_per_second]}
)";
const std::string kServed = kSearchHead + R"(workload: {requests: 12, prompt_tokens: 200, output_tokens: 16}
sweep: {kv_cache.block_size: [1, 16]}
objective: {maximize: output_tokens_per_second}
)";

[[nodiscard]] config::Scenario search_scenario(const std::string& yaml) {
  return config::read_scenario("s.yaml", config::parse_yaml("s.yaml", yaml));
}

[[nodiscard]] std::vector<std::uint64_t> numbers(const std::vector<KeptPoint>& points) {
  std::vector<std::uint64_t> all;
  for (const KeptPoint& point : points) all.push_back(point.number);
  return all;
}

void check_same(const SearchSummary& one, const SearchSummary& other) {
  CHECK(numbers(one.best()) == numbers(other.best()));
  CHECK(numbers(one.front()) == numbers(other.front()));
  for (std::size_t metric = 0; metric < one.best().front().figures.size(); ++metric) {
    const double first = one.best().front().figures[metric], second = other.best().front().figures[metric];
    CHECK((first == second || (std::isnan(first) && std::isnan(second))));
  }
  CHECK(one.contenders() == other.contenders());
  for (const auto outcome : {config::Outcome::met, config::Outcome::excluded, config::Outcome::refused})
    CHECK(one.count(outcome) == other.count(outcome));
}

TEST_CASE("a search finds what pricing every point by itself finds") {
  const SweepSpace space(search_scenario(kSteps));
  const SearchSummary found = search(space, {.threads = 2});
  const std::size_t time = space.metric("step_time"), rate = space.metric("tokens_per_second");
  PointPricer pricer(space);
  double best = 0;
  std::uint64_t met = 0;
  std::vector<std::pair<double, double>> all;
  for (std::uint64_t point = 0; point < space.size(); ++point) {
    config::SearchChunk chunk(space.metrics().size());
    pricer.price(point, chunk);
    REQUIRE(chunk.points.front().outcome != config::Outcome::refused);
    const auto figures = chunk.figures(0);
    const bool meets = figures[time] <= 0.040;
    CHECK((chunk.points.front().outcome == config::Outcome::met) == meets);
    if (!meets) continue;
    ++met;
    best = std::max(best, figures[rate]);
    all.emplace_back(figures[time], figures[rate]);
  }
  CHECK(found.count(config::Outcome::met) == met);
  CHECK(found.best().front().figures[rate] == best);
  for (const KeptPoint& kept : found.front())
    CHECK(std::ranges::none_of(all, [&](const auto& other) {
      return (other.first < kept.figures[time] && other.second >= kept.figures[rate]) ||
             (other.first <= kept.figures[time] && other.second > kept.figures[rate]);
    }));
}

TEST_CASE("shards put together are the search, whatever their order") {
  const files::test::TemporaryFolder folder;
  const SweepSpace space(search_scenario(kServed));
  const SearchSummary whole = search(space, {.threads = 1});
  std::vector<std::string> journals;
  for (int shard = 2; shard >= 1; --shard) {
    journals.push_back(folder.path("shard" + std::to_string(shard)));
    search_shard(space, {.threads = 1, .journal = journals.back(), .shard = shard, .shards = 2});
  }
  check_same(ShardJournals(journals).summary(), whole);
  CHECK_THROWS_AS(ShardJournals({journals.front()}), InputError);
  CHECK_THROWS_AS(ShardJournals({journals.front(), journals.front()}), InputError);
}

TEST_CASE("a search goes on with its journal and prices nothing twice") {
  const files::test::TemporaryFolder folder;
  const SweepSpace space(search_scenario(kServed));
  const SearchOptions options{.threads = 1, .journal = folder.path("journal")};
  std::uint64_t points = 0;
  const SearchSummary whole =
      search(space, options,
             {.on_points = [&](std::uint64_t, const config::SearchChunk& chunk) { points += chunk.points.size(); }});
  CHECK(points == space.size());
  CHECK_THROWS_AS(search(space, options), InputError);  // it is there
  double reported = -1;
  SearchOptions again = options;
  again.start = config::JournalStart::resume;
  check_same(search(space, again, {.progress = [&reported](const std::string&, double share) { reported = share; }}),
             whole);
  CHECK(reported == -1);  // nothing was left to price
}

TEST_CASE("metrics that a step does not have, and sweeps without any point, are refused") {
  CHECK_THROWS_AS(SweepSpace(search_scenario(kSearchHead + "workload: {phase: decode, batch: 1, context_tokens: 9}\n"
                                                           "sweep: {kv_cache.block_size: [1, 16]}\n"
                                                           "objective: {maximize: goodput}\n")),
                  InputError);
  const SweepSpace impossible(search_scenario(kSearchHead + "workload: {phase: decode, batch: 1, context_tokens: 9}\n"
                                                            "sweep: {model.num_key_value_heads: [3, 5]}\n"
                                                            "objective: {maximize: tokens_per_second}\n"));
  CHECK_THROWS_AS(search(impossible, {.threads = 1}), InputError);
}

TEST_CASE("what is told of a search has intervals, and what would change it is on the best point's machine") {
  const SweepSpace space(search_scenario(kSteps));
  const SearchSummary found = search(space, {.threads = 1});
  const SearchAnswer answer = answer_search(space, found, {.threads = 1, .sensitivity_within = 2});
  CHECK(answer.block_sizes.empty());
  REQUIRE(answer.trusts.size() == answer.reported.size());
  for (const KeptPoint& point : answer.reported) {
    const PointTrust& trust = answer.trusts.at(point.number);
    const double seconds = point.figures[space.metric("step_time")];
    CHECK(trust.machine == space.machine("z100").name);
    CHECK(trust.low < seconds);
    CHECK(trust.high > seconds);
  }
  REQUIRE(answer.sensitivity);
  const SearchSensitivity& sensitivity = *answer.sensitivity;
  CHECK(sensitivity.machine.name == space.machine("z100").name);
  CHECK(sensitivity.contenders == space.size());
  CHECK_FALSE(sensitivity.figures.empty());
  for (const sim::Sensitivity& each : sensitivity.figures)
    for (const auto& flip : {each.down, each.up})
      if (flip) CHECK(flip->choice != sensitivity.choice);
}

TEST_CASE("a search over served requests decides the block size over several draws") {
  const SweepSpace space(search_scenario(kServed));
  const std::vector<ServedBlockSizes> sizes = served_block_sizes(space, search(space, {.threads = 1}), 1);
  REQUIRE(sizes.size() == 1);
  CHECK(sizes.front().kv_heads == 8);
  CHECK(sizes.front().blocks.evaluated.size() == 2);
  CHECK(served_block_sizes(SweepSpace(search_scenario(kSteps)),
                           search(SweepSpace(search_scenario(kSteps)), {.threads = 1}), 1)
            .empty());
}

}  // namespace
}  // namespace dculab::study::test
