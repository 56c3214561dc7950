// The second set of KV heads of a scenario.
#include "study/scenario/few_heads.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario few_heads_scenario(
    const std::string& groups, const std::string& more = "", const std::string& model = "dculab-tiny",
    const std::string& workload = "{requests: 4, prompt_tokens: 100, output_tokens: 10}") {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: " + model +
                                                  "\nmachine: z100\nworkload: " + workload +
                                                  "\nengine: {groups_by_load: " + groups + "}\n" + more));
}

sim::SimulatedServer server_of(const config::Scenario& scenario) {
  return resolve_server(scenario, resolve_machine(scenario, "z100"));
}

TEST_CASE("the second set is means of the model's heads, which share its weights, or a folder's whole model") {
  const sim::SimulatedServer means = server_of(few_heads_scenario("{num_key_value_heads: 2}"));
  REQUIRE(means.few_heads);
  CHECK(means.few_heads->model.heads().num_key_value_heads == 2);
  CHECK(means.few_heads->weights == FewWeights::kv_projections);
  CHECK(options_of_few(means.options, means.model, means.few_heads->model).block_size == 4 * means.options.block_size);
  const sim::SimulatedServer folder = server_of(few_heads_scenario("{model: dculab-tiny-gqa2}"));
  REQUIRE(folder.few_heads);
  CHECK(folder.few_heads->weights == FewWeights::all);
  CHECK(few_heads_footprint(folder.model, *folder.few_heads, folder.options.weights) >
        few_heads_footprint(means.model, *means.few_heads, means.options.weights));
}

TEST_CASE("heads that do not go with the model, and questions of one set, are refused by their key") {
  const auto refused = [](const config::Scenario& scenario, const std::string& why) {
    CHECK_THROWS_WITH(server_of(scenario), ContainsSubstring("engine.groups_by_load") && ContainsSubstring(why));
  };
  refused(few_heads_scenario("{num_key_value_heads: 8}"), "not fewer");
  refused(few_heads_scenario("{num_key_value_heads: 3}"), "power of two");
  refused(few_heads_scenario("{model: dculab-tiny-cla2}"), "every layer needs K and V of its own");
  refused(few_heads_scenario("{model: llama-2-7b}"), "more than its KV heads");
  refused(few_heads_scenario("{num_key_value_heads: 2}", "kv_cache: {block_size: 128}\n"), "lower kv_cache.block_size");
  refused(few_heads_scenario("{num_key_value_heads: 2}", "slo: {slowdown: 2}\n"), "slo.slowdown");
  refused(few_heads_scenario("{num_key_value_heads: 2}",
                             "deployment: {prefill_replicas: 1, decode_replicas: 1, kv_transfer: "
                             "{bandwidth: 10 GB/s}}\n"),
          "neither handed over");
  refused(few_heads_scenario("{num_key_value_heads: 2}", "", "dculab-tiny",
                             "{phase: decode, batch: 4, context_tokens: 100}"),
          "served over time");
}

}  // namespace
}  // namespace dculab::study
