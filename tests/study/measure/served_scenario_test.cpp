// A scenario's requests served by the engine here. No time is judged.
#include "study/measure/served_scenario.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario served_scenario(const std::string& more, const std::string& model = "dculab-tiny") {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: " + model +
                                                  "\nmachine: x86-server\nworkload: {requests: 3, prompt_tokens: 20, "
                                                  "output_tokens: 4, arrival: all_at_once}\n" +
                                                  more));
}

ServedScenario serve(const config::Scenario& scenario, const std::optional<DraftChoice>& drafter = std::nullopt,
                     engine::DeviceChoice device = {}) {
  return serve_scenario({.scenario = scenario, .device = device, .threads = 1, .drafter = drafter},
                        [](const std::string&, double) {});
}

TEST_CASE("every point of a sweep is served whole, and its steps are named after it") {
  const ServedScenario answer = serve(served_scenario("sweep: {kv_cache.block_size: [8, 16]}\n"));
  REQUIRE(answer.points.size() == 2);
  for (const ServedSweepPoint& point : answer.points) {
    CHECK(point.served.metrics.requests() == 3);
    CHECK(point.served.metrics.prompt_tokens() == 60);
    CHECK(point.num_blocks > 0);
    CHECK(point.served.timeline.most_used_blocks() <= point.num_blocks);
    CHECK_FALSE(point.few_heads);
    CHECK_FALSE(point.header.device.empty());
  }
  CHECK(answer.points[0].options.block_size == 8);
  CHECK(answer.points[1].options.block_size == 16);
  REQUIRE_FALSE(answer.trace.steps.empty());
  CHECK(answer.trace.steps.front().id.starts_with("block 8, "));
  CHECK(answer.trace.steps.back().id.starts_with("block 16, "));
}

TEST_CASE("what the engine here does not serve is refused before it serves") {
  CHECK_THROWS_WITH(serve(served_scenario("sweep: {machine: [z100, x86-server]}\n")),
                    ContainsSubstring("bench runs on this machine"));
  CHECK_THROWS_WITH(serve(served_scenario("", "{name: dculab-tiny, num_key_value_heads: 2}")),
                    ContainsSubstring("leave changes of its shape out"));
  CHECK_THROWS_WITH(serve(served_scenario("deployment: {data_parallel_size: 2}\n"), std::nullopt,
                          {.kind = engine::DeviceKind::host_gpu}),
                    ContainsSubstring("replicas share the CPU"));
}

TEST_CASE("either the scenario or the question says what drafts") {
  const std::string lookup =
      "engine: {speculative_config: {method: ngram, num_speculative_tokens: 2, acceptance: 0.5}}\n";
  const DraftChoice asked{.config = {.method = SpeculativeMethod::ngram, .shape = chain_shape(2)}, .model = ""};
  CHECK_THROWS_WITH(serve(served_scenario(lookup), asked), ContainsSubstring("the scenario says what drafts"));
  const ServedScenario drafted = serve(served_scenario(""), asked);
  CHECK(drafted.points.front().options.speculative_config.method == SpeculativeMethod::ngram);
  CHECK(drafted.points.front().served.metrics.requests() == 3);
}

}  // namespace
}  // namespace dculab::study
