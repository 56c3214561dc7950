// Sizes of a model that a scenario changes.
#include <string>

#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

TEST_CASE("sizes of a mixture of experts are changed in its layers alone") {
  LayerKind dense, mixture;
  dense.mlp.intermediate_size = 128;
  mixture.experts = Experts{.num_experts = 8, .num_experts_per_tok = 2, .intermediate_size = 32};
  ModelShape model{.name = "mixture"};
  model.kinds.clear();
  add_layer(model, dense), add_layer(model, mixture);
  const Scenario scenario = read_scenario("s.yaml", parse_yaml("s.yaml", R"(schema: dculab/scenario/1
question: How fast is a step with wider experts?
model: {name: m, moe_intermediate_size: 48, num_experts: 16}
machine: z100
workload: {phase: decode, batch: 8, context_tokens: 2048}
objective: {minimize: step_time}
)"));
  const ModelShape changed = resolve_model(model, scenario.model);
  CHECK(changed.kinds[0] == dense);
  CHECK(changed.kinds[1].experts == Experts{.num_experts = 16, .num_experts_per_tok = 2, .intermediate_size = 48});
  CHECK(resolve_model(model, {.name = "m", .overrides = {{"num_experts_per_tok", 4}}}).kinds[1].experts ==
        Experts{.num_experts = 8, .num_experts_per_tok = 4, .intermediate_size = 32});
  set_layers(model, 2, dense);
  CHECK_THROWS_WITH(resolve_model(model, scenario.model), ContainsSubstring("mixture has no such size"));
}

TEST_CASE("heads of a model whose layers have unequal ones are not changed") {
  ModelShape model{.name = "unequal"};
  LayerKind first, second;
  first.gqa().heads = {8, 4, 64}, second.gqa().heads = {8, 2, 128};
  model.kinds.clear();
  add_layer(model, first), add_layer(model, second);
  for (const char* key : {"num_key_value_heads", "head_dim"})
    CHECK_THROWS_WITH(resolve_model(model, {.name = "m", .overrides = {{key, 8}}}),
                      ContainsSubstring(std::string(key) + ": layers of unequal have heads that differ"));
}

}  // namespace
}  // namespace dculab::config
