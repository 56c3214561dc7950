// engine.groups_by_load of a scenario.
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::config;

namespace {

constexpr const char* kServingHead =
    "schema: dculab/scenario/1\nquestion: q\nmodel: llama-2-7b\nmachine: z100\n"
    "workload: {requests: 4, prompt_tokens: 100, output_tokens: 10}\n";

Scenario read_groups(const std::string& groups) {
  return read_scenario("s.yaml",
                       parse_yaml("s.yaml", std::string(kServingHead) + "engine:\n  groups_by_load: " + groups + "\n"));
}

}  // namespace

TEST_CASE("a second set of heads and its thresholds are read") {
  const Scenario scenario = read_groups("{num_key_value_heads: 8, waiting_above: 5, usage_below: 0.25}");
  CHECK(scenario.options.groups_by_load == GroupsByLoad{.waiting_above = 5, .usage_below = 0.25});
  CHECK(scenario.few_heads.num_key_value_heads == 8);
  CHECK(read_groups("{model: folder, heads: few}").few_heads.model == "folder");
  CHECK(read_groups("{model: folder, heads: few}").options.groups_by_load->heads == HeadAssignment::few);
  const Scenario without = read_scenario("s.yaml", parse_yaml("s.yaml", kServingHead));
  CHECK_FALSE(without.options.groups_by_load);
}

TEST_CASE("a sweep changes one key of the second set and keeps the others") {
  Scenario scenario = read_groups("{num_key_value_heads: 8, waiting_above: 5}");
  apply_axis(scenario, "engine.groups_by_load.heads", "many");
  CHECK(scenario.options.groups_by_load->heads == HeadAssignment::many);
  CHECK(scenario.options.groups_by_load->waiting_above == 5);
  apply_axis(scenario, "engine.groups_by_load.num_key_value_heads", "4");
  CHECK(scenario.few_heads.num_key_value_heads == 4);
}

TEST_CASE("a second set that is not clear, and thresholds without a distance, are refused where they stand") {
  const auto refused = [](const std::string& groups, const std::string& why) {
    INFO(groups);
    CHECK_THROWS_WITH(read_groups(groups), ContainsSubstring("s.yaml:7") && ContainsSubstring(why));
  };
  refused("{}", "needs num_key_value_heads or model");
  refused("{num_key_value_heads: 8, model: folder}", "needs num_key_value_heads or model");
  refused("{num_key_value_heads: 0}", "num_key_value_heads");
  refused("{num_key_value_heads: 8, heads: all}", "by_load");
  refused("{num_key_value_heads: 8, waiting_above: 3, waiting_below: 3}", "waiting_below");
  refused("{num_key_value_heads: 8, usage_above: 1.5}", "usage_above");
  refused("{num_key_value_heads: 8, hold: 1 s}", "hold");
}
