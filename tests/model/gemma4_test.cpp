// Gemma 4: heads that differ by kind of layer, V from K's projection, experts beside the MLP.
#include <algorithm>
#include <string>
#include <vector>

#include "model/kv/kv_bytes.hpp"
#include "model/model_config.hpp"
#include "model/plan_step.hpp"
#include "tests/model/small_plan.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

// With the layer types below, and twice as wide MLPs where KV is shared, transformers 5.23 counts 389776 parameters.
[[nodiscard]] ModelShape read_gemma4(const std::string& fields) {
  return parse_model_shape(R"({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "vocab_size": 100,
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 8, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "global_head_dim": 32, "hidden_size_per_layer_input": 0,
    "sliding_window": 64, "dtype": "bfloat16", "layer_types": ["sliding_attention", "full_attention",
    "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention",
    "full_attention"])" + fields +
                               "}}",
                           "config.json", "small");
}

[[nodiscard]] const Op& find_in_kind(const StepPlan& plan, std::string_view name, std::size_t kind) {
  const auto found =
      std::ranges::find_if(plan.ops, [&](const Op& op) { return op.name == name && op.layer_kind == kind; });
  REQUIRE(found != plan.ops.end());
  return *found;
}

[[nodiscard]] StepPlan decode(const ModelShape& model) {
  EngineOptions options;
  options.weights = model.layer_format();
  return plan_step(model, options, uniform_batch(Phase::decode, 3, 100));
}

}  // namespace

TEST_CASE("layers without a window have larger heads, and take V from K's projection", "[gemma4]") {
  const ModelShape model = read_gemma4(R"(, "attention_k_eq_v": true, "num_global_key_value_heads": 1)");
  REQUIRE(model.kinds.size() == 2);
  const Gqa &windowed = model.kinds[0].gqa(), &full = model.kinds[1].gqa();
  CHECK(windowed.heads == Heads{4, 2, 16});
  CHECK(full.heads == Heads{4, 1, 32});
  CHECK(full.score_scale() == 1);
  CHECK(full.position.rope_theta == 1e6);
  const StepPlan plan = decode(model);
  CHECK(find_in_kind(plan, "qkv_proj", 0).n == (4 + 2 + 2) * 16);
  CHECK(find_in_kind(plan, "qkv_proj", 1).n == (4 + 1) * 32);
  // K and V are cached all the same, and V is normed beside Q and K, without weights.
  CHECK(bytes_of(find_in_kind(plan, "rope_and_cache", 1), OperandRole::kv_write) == 2.0 * 3 * 2 * 32);
  CHECK(find_in_kind(plan, "qk_norm", 1).n == (4 + 1 + 1) * 32);
  CHECK(bytes_of(find_in_kind(plan, "qk_norm", 1), OperandRole::weight) == 2.0 * 2 * 32);
  CHECK(kv_bytes_per_token(model, Dtype::bf16).value() == 2 * (4 * 2 * 2 * 16 + 4 * 2 * 1 * 32));
}

TEST_CASE("a model whose layers have unequal heads keeps their number", "[gemma4]") {
  const ModelShape model = read_gemma4(R"(, "attention_k_eq_v": true, "num_global_key_value_heads": 1)");
  CHECK(model.has_unequal_heads());
  CHECK(model.possible_kv_heads() == std::vector{2});
  CHECK(with_kv_heads(model, 1) == model);
}

TEST_CASE("Gemma 4's experts stand beside its MLP, with norms of their own", "[gemma4]") {
  const ModelShape model =
      read_gemma4(R"(, "enable_moe_block": true, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 24)");
  CHECK(model.kinds[0].mlp.intermediate_size == 128);
  CHECK(model.kinds[0].experts->intermediate_size == 24);
  const StepPlan plan = decode(model);
  std::vector<std::string> order;
  for (const Op& op : plan.ops)
    if (op.layer_kind == 0 && (op.name.starts_with("experts_") || op.name.starts_with("router") ||
                               op.name == "shared_post_norm" || op.name == "down_proj" || op.name == "combine_experts"))
      order.emplace_back(op.name);
  CHECK(order == std::vector<std::string>{"router_norm", "router", "experts_norm", "experts_gate_up_proj",
                                          "experts_gelu_and_mul", "experts_down_proj", "down_proj", "shared_post_norm",
                                          "combine_experts", "experts_post_norm"});
  for (const char* name : {"router_norm", "experts_norm", "shared_post_norm", "experts_post_norm", "mlp_post_norm"})
    CHECK(find_in_kind(plan, name, 0).kind == OpKind::rms_norm);
  CHECK(find_in_kind(plan, "gate_up_proj", 0).n == 256);
  CHECK(find_in_kind(plan, "experts_gate_up_proj", 0).n == 48);
  CHECK(bytes_of(find_in_kind(plan, "combine_experts", 0), OperandRole::activation) == 2.0 * 3 * (2 + 1) * 64 + 4 * 6);
}

TEST_CASE("Gemma 4's last layers may read the KV of the last of their type before them", "[gemma4]") {
  const ModelShape model = read_gemma4(R"(, "num_kv_shared_layers": 2, "use_double_wide_mlp": true)");
  CHECK(model.kv_sources == std::vector{0, 1, 2, 3, 4, 5, 4, 5});
  CHECK(model.layer(7).mlp.intermediate_size == 256);
  CHECK(weight_footprint(model, {Dtype::bf16, 0}).value() == 2 * 389776);
  CHECK_THROWS_WITH(read_gemma4(R"(, "num_kv_shared_layers": 7)"),
                    ContainsSubstring("no layer of type full_attention"));
  CHECK_THROWS_WITH(read_gemma4(R"(, "num_kv_shared_layers": 8)"), ContainsSubstring("fewer than the layers"));
}

TEST_CASE("what of Gemma 4 is not predicted is refused", "[gemma4]") {
  const auto silent = [](const char* type) {
    return parse_model_shape(std::string(R"({"model_type": ")") + type + R"("})", "config.json", "small");
  };
  CHECK_THROWS_WITH(silent("gemma4_text"), ContainsSubstring("an embedding for each layer"));
  CHECK(silent("gemma4_unified_text").max_position_embeddings == 262144);
  CHECK_THROWS_WITH(read_gemma4(R"(, "use_bidirectional_attention": "all")"), ContainsSubstring("not supported"));
  CHECK_THROWS_WITH(read_gemma4(R"(, "rope_parameters": {"full_attention": {"rope_type": "yarn"}})"),
                    ContainsSubstring("'yarn' is not supported"));
}
