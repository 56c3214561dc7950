// Multi-head latent attention, cross-layer attention and gated delta nets: what they cache, weigh, and plan.
#include <algorithm>
#include <numeric>

#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "tests/model/small_plan.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

[[nodiscard]] Mla small_latents() {
  return {.num_attention_heads = kSmallHeads,
          .q_lora_rank = 24,
          .kv_lora_rank = 32,
          .qk_nope_head_dim = 16,
          .qk_rope_head_dim = 8,
          .v_head_dim = 12};
}

[[nodiscard]] ModelShape small_latent(const Attention& attention, int layers = 2) {
  ModelShape model{.name = "small", .hidden_size = kSmallHidden, .vocab_size = 100, .max_position_embeddings = 256};
  set_layers(model, layers, {.attention = attention, .mlp = {128}});
  return model;
}

[[nodiscard]] EngineOptions f16_options() {
  EngineOptions options;
  options.weights = {Dtype::f16, 0};
  return options;
}

}  // namespace

TEST_CASE("decode reads latents once for all heads, prefill expands those of the context", "[mla]") {
  const ModelShape model = small_latent(small_latents());
  REQUIRE(problems(model).empty());
  CHECK(kv_bytes_per_token(model, Dtype::bf16).value() == 2 * 2 * (32 + 8));

  const StepPlan decode = plan_step(model, f16_options(), uniform_batch(Phase::decode, 3, 100));
  CHECK_FALSE(has(decode, "kv_b_proj"));
  const Op& attention = find(decode, "attention_decode");
  CHECK(attention.attention.num_kv_heads == 1);
  CHECK(attention.attention.num_query_heads == kSmallHeads);
  CHECK(bytes_of(attention, OperandRole::kv_read) == 3 * 100 * (32 + 8) * 2);
  CHECK(attention.flops.value() == 2.0 * 3 * 100 * kSmallHeads * ((32 + 8) + 32));
  const Op& absorb = find(decode, "absorb_k");
  CHECK(absorb.groups.count == kSmallHeads);
  CHECK(absorb.flops.value() == 2.0 * 3 * kSmallHeads * 16 * 32);
  CHECK(bytes_of(absorb, OperandRole::weight) == kSmallHeads * 16 * 32 * 2);

  const StepPlan prefill = plan_step(model, f16_options(), uniform_batch(Phase::prefill, 2, 50));
  CHECK_FALSE(has(prefill, "absorb_k"));
  CHECK(find(prefill, "kv_b_proj").m == 2 * 50);
  CHECK(find(prefill, "kv_b_proj").n == kSmallHeads * (16 + 12));
  CHECK(find(prefill, "attention_prefill").attention.head_dim == 16 + 8);
  CHECK(find(prefill, "o_proj").k == kSmallHeads * 12);
}

TEST_CASE("a chunk of a prefill expands the latents of the tokens before it too", "[mla]") {
  const ModelShape model = small_latent(small_latents());
  StepPlan plan;
  plan.batch.sequences = {{.phase = Phase::prefill, .num_computed_tokens = 40, .num_new_tokens = 10}};
  plan_step_into(plan, model, f16_options());
  const Op& expand = find(plan, "kv_b_proj");
  CHECK(expand.m == 50);
  CHECK(bytes_of(expand, OperandRole::kv_read) == 40 * (32 + 8) * 2);
}

TEST_CASE("either form may be asked for in either phase", "[mla]") {
  EngineOptions options = f16_options();
  options.decode_latents = LatentForm::expand;
  const ModelShape model = small_latent(small_latents());
  const StepPlan plan = plan_step(model, options, uniform_batch(Phase::decode, 3, 100));
  CHECK(find(plan, "kv_b_proj").m == 300);
  CHECK(find(plan, "attention_decode").attention.num_kv_heads == kSmallHeads);
}

TEST_CASE("devices share the heads of latent attention and keep all latents", "[mla]") {
  const ModelShape whole = small_latent(small_latents()), part = shard(whole, {}, 2);
  CHECK(part.kinds[0].mla()->num_attention_heads == kSmallHeads / 2);
  CHECK(kv_bytes_per_token(part, Dtype::f16) == kv_bytes_per_token(whole, Dtype::f16));
  CHECK_FALSE(shard_problems(whole, {Dtype::f16, 0}, 3).empty());
}

TEST_CASE("a latent has no KV heads to choose", "[mla]") {
  const ModelShape model = small_latent(small_latents());
  CHECK(model.possible_kv_heads() == std::vector{1});
  CHECK(with_kv_heads(model, 2) == model);
  CHECK(small_latent(Gqa{.heads = {4, 4, 16}}).possible_kv_heads() == std::vector{4, 2, 1});
}

TEST_CASE("a cache of K and V is refused with what the model caches instead", "[mla]") {
  EngineOptions options;
  options.kv_cache_dtype = Dtype::kivi4;
  const auto found = problems(options, small_latent(small_latents()));
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "a KV cache of kivi4 cannot serve small: it needs K and V in every layer, and this model caches latents");
  CHECK(problems(options, small_latent(Gqa{.heads = {4, 4, 16}})).empty());
}

TEST_CASE("loads of experts need experts, and as many of them as a token chooses", "[moe]") {
  ModelShape model = small_latent(Gqa{.heads = {4, 4, 16}});
  EngineOptions options;
  CHECK(problems(options, model).empty());
  options.expert_load.zipf_exponent = 1;
  CHECK(problems(options, model) == std::vector<std::string>{"experts: small has none to load"});
  model.kinds[0].experts = Experts{.num_experts = 4, .num_experts_per_tok = 2, .intermediate_size = 32};
  CHECK(problems(options, model).empty());
  options.expert_load = {.histogram = {5, 0, 0, 0}};
  CHECK(problems(options, model) ==
        std::vector<std::string>{"the histogram of experts has counts for 1 of them, and each token goes to 2"});
  options.expert_load = {.histogram = {5, 1}};
  CHECK(problems(options, model) ==
        std::vector<std::string>{"the histogram of experts counts 2 of them, and the model has 4"});
  options.expert_load = {.histogram = {5, 0, 1, 0}};
  CHECK(problems(options, model).empty());
}

TEST_CASE("layers that read the KV of an earlier one keep none", "[cla]") {
  ModelShape model = small_latent(Gqa{.heads = {4, 2, 16}});
  const Bytes whole = kv_bytes_per_token(model, Dtype::f16);
  LayerKind sharing = model.kinds[0];
  sharing.gqa().shares_kv = true;
  model.layers.clear();
  model.kinds.resize(1);
  for (const bool shares : {false, true, false, true}) add_layer(model, shares ? sharing : model.kinds[0]);
  model.kv_sources = {0, 0, 2, 2};
  REQUIRE(problems(model).empty());
  CHECK(kv_bytes_per_token(model, Dtype::f16) == whole);  // of two layers of four
  const StepPlan plan = plan_step(model, f16_options(), uniform_batch(Phase::decode, 2, 64));
  const Op& q_proj = find(plan, "q_proj");
  CHECK(q_proj.n == 4 * 16);
  CHECK(q_proj.count == 2);
  const auto last_cache = std::ranges::find_if(
      plan.ops, [](const Op& op) { return op.kind == OpKind::rope_and_cache && op.layer_kind == 1; });
  CHECK(bytes_of(*last_cache, OperandRole::kv_write) == 0);

  model.kv_sources = {0, 3, 2, 2};
  CHECK(problems(model).front() == "layer 1 reads the KV of layer 3, which is not an earlier one");
  model.kv_sources = {0, 0, 2, 1};
  CHECK(problems(model).front() == "layer 3 reads the KV of layer 1, which has none of its own");
  model.kv_sources = {};
  CHECK(problems(model).front() == "layer 1 has no K and V, and no earlier layer's");
}

TEST_CASE("a gated delta net keeps a state of fixed size", "[gdn]") {
  const GatedDeltaNet net{
      .num_key_heads = 2, .num_value_heads = 4, .key_head_dim = 16, .value_head_dim = 8, .conv_kernel = 4};
  ModelShape model = small_latent(Gqa{.heads = {4, 2, 16}}, 1);
  add_layer(model, {.attention = net, .mlp = {128}});
  REQUIRE(problems(model).empty());
  model.dtype = Dtype::bf16;
  CHECK(recurrent_state_bytes(model).value() == 4 * (4 * 16 * 8) + 2 * 3 * (2 * 2 * 16 + 4 * 8));
  const auto states = [&model](int context) {
    return bytes_of(
        find(plan_step(model, f16_options(), uniform_batch(Phase::decode, 5, context)), "delta_rule_decode"),
        OperandRole::kv_read);
  };
  CHECK(states(10) == 5 * 4.0 * 4 * 16 * 8);
  CHECK(states(200) == states(10));
  CHECK(small_latent(net).heads() == Heads{});
  CHECK(problems(small_latent(net)).front() == "no layer keeps keys or latents: a model needs one with attention");
}

TEST_CASE("queries that attend in chunks see those of their own", "[attention]") {
  const auto pairs_of = [](int computed, int added) {
    Gqa attention{.heads = {1, 1, 16}, .sliding_window = 64, .in_chunks = true};
    StepPlan plan;
    plan.batch.sequences = {{.phase = Phase::prefill, .num_computed_tokens = computed, .num_new_tokens = added}};
    plan_step_into(plan, small_latent(attention), f16_options());
    return find(plan, "attention_prefill").attention;
  };
  for (const auto& [computed, added] : {std::pair{0, 10}, {0, 64}, {0, 200}, {70, 5}, {100, 100}}) {
    double pairs = 0;
    for (int position = computed; position < computed + added; ++position) pairs += position % 64 + 1;
    INFO(computed << " + " << added);
    CHECK(pairs_of(computed, added).score_pairs == pairs);
  }
  CHECK(pairs_of(130, 5).context_tokens == 7);
}
