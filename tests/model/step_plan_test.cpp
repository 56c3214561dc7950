// The step plan against numbers worked out by hand.
#include "model/plan_step.hpp"

#include <algorithm>
#include <string_view>

#include "core/activation_mode.hpp"
#include "tests/model/small_plan.hpp"
#include "tests/support/catch.hpp"

namespace dculab {
namespace {

TEST_CASE("matmuls take activations as asked where their weights go with it, and exactly elsewhere") {
  ModelShape model = small_model();
  const Batch batch = uniform_batch(Phase::decode, 2, 100);
  const auto modes = [&](WeightFormat weights, ActivationMode asked) {
    EngineOptions options;
    options.weights = weights;
    options.activations = asked;
    const StepPlan plan = plan_step(model, options, batch);
    return std::pair{find(plan, "qkv_proj").activations, find(plan, "lm_head").activations};
  };
  constexpr ActivationMode exact = ActivationMode::exact;
  model.dtype = Dtype::bf16;
  CHECK(modes({Dtype::bf16, 0}, ActivationMode::bf16) == std::pair{ActivationMode::bf16, ActivationMode::bf16});
  CHECK(modes({Dtype::bf16, 0}, ActivationMode::int8) == std::pair{exact, exact});
  CHECK(modes({Dtype::int4, 16}, ActivationMode::int8) == std::pair{ActivationMode::int8, exact});
  model.dtype = Dtype::f16;
  CHECK(modes({Dtype::f16, 0}, ActivationMode::bf16) == std::pair{exact, exact});
}

TEST_CASE("a decode step has every op of a Llama layer, once, with the layer count") {
  const StepPlan plan = plan_step(small_model(), {}, uniform_batch(Phase::decode, 2, 100));
  const std::vector<std::string_view> expected{"embed_tokens",
                                               "input_layernorm",
                                               "qkv_proj",
                                               "rope_and_cache",
                                               "attention_decode",
                                               "o_proj",
                                               "post_attention_layernorm",
                                               "gate_up_proj",
                                               "silu_and_mul",
                                               "down_proj",
                                               "norm",
                                               "lm_head"};
  REQUIRE(plan.ops.size() == expected.size());
  for (std::size_t index = 0; index < expected.size(); ++index) {
    CHECK(plan.ops[index].name == expected[index]);
    CHECK(plan.ops[index].count == (plan.ops[index].stage == Stage::layer ? 3 : 1));
  }
}

TEST_CASE("matmul FLOP and bytes") {
  const StepPlan plan = plan_step(small_model(), {}, uniform_batch(Phase::decode, 2, 100));
  const Op& qkv = find(plan, "qkv_proj");
  CHECK(qkv.m == 2);
  CHECK(qkv.n == 32 + 2 * 16);
  CHECK(qkv.k == 32);
  CHECK(qkv.flops.value() == 2.0 * 2 * 64 * 32);
  CHECK(operand(qkv, OperandRole::weight).unique.value() == 64 * 32 * 2);
  CHECK(find(plan, "gate_up_proj").n == 160);
  CHECK(find(plan, "lm_head").n == 100);
}

TEST_CASE("int4 weights carry their scales and zero points, the head does not shrink") {
  EngineOptions options;
  options.weights = {Dtype::int4, 16};
  const StepPlan plan = plan_step(small_model(), options, uniform_batch(Phase::decode, 1, 10));
  // 32 x 80 values of half a byte; one F16 scale and one 4-bit zero point per 16 of them.
  CHECK(operand(find(plan, "down_proj"), OperandRole::weight).unique.value() == 32 * 80 * 0.5 + 32 * 80 / 16 * 2.5);
  CHECK(operand(find(plan, "lm_head"), OperandRole::weight).unique.value() == 100 * 32 * 2);
}

TEST_CASE("a step of the largest batch and the longest context is counted whole: 2^40 tokens") {
  const EngineOptions options;
  const double tokens = 0x1p40;
  const StepPlan prefill = plan_step(small_model(), options, uniform_batch(Phase::prefill, 1 << 16, 1 << 24));
  CHECK(prefill.batch.num_tokens() == std::int64_t{1} << 40);
  CHECK(find(prefill, "gate_up_proj").m == std::int64_t{1} << 40);
  CHECK(find(prefill, "gate_up_proj").flops.value() == 2 * tokens * 160 * 32);
  CHECK(find(prefill, "attention_prefill").attention.query_tokens == tokens);
  CHECK(operand(find(prefill, "rope_and_cache"), OperandRole::kv_write).unique.value() == 2 * tokens * 2 * 8 * 2);

  const StepPlan decode = plan_step(small_model(), options, uniform_batch(Phase::decode, 1 << 16, 1 << 24));
  CHECK(find(decode, "attention_decode").attention.context_tokens == tokens);
}

TEST_CASE("the sink keys of the largest batch are counted whole") {
  EngineOptions options;
  options.kv_retention = {.policy = RetentionPolicy::sinks, .sink_tokens = 1 << 23, .window_tokens = 1 << 23};
  Batch batch = uniform_batch(Phase::decode, 1 << 16, 1 << 24);
  for (SequenceSlice& sequence : batch.sequences) sequence.num_newly_evicted_tokens = 16;
  CHECK(find(plan_step(small_model(), options, batch), "shift_sink_keys").m == std::int64_t{1} << 39);
}

TEST_CASE("a mixed step has both attention ops; a chunk without logits has no head") {
  Batch batch;
  batch.sequences = {
      {.id = 0, .phase = Phase::prefill, .num_computed_tokens = 0, .num_new_tokens = 7, .num_logits = 0},
      {.id = 1, .phase = Phase::decode, .num_computed_tokens = 30, .num_new_tokens = 1, .num_logits = 1}};
  const StepPlan mixed = plan_step(small_model(), {}, batch);
  CHECK(find(mixed, "attention_prefill").m == 7);
  CHECK(find(mixed, "attention_decode").m == 1);
  CHECK(find(mixed, "lm_head").m == 1);
  batch.sequences.pop_back();
  const StepPlan chunk = plan_step(small_model(), {}, batch);
  CHECK(chunk.ops.back().name == "down_proj");
}

TEST_CASE("planning again into the same plan gives the same ops") {
  StepPlan plan = plan_step(small_model(), {}, uniform_batch(Phase::decode, 3, 50));
  const FlopCount before = total_flops(plan);
  const std::size_t ops = plan.ops.size();
  plan_step_into(plan, small_model(), {});
  CHECK(total_flops(plan) == before);
  CHECK(plan.ops.size() == ops);
}

std::vector<std::string_view> names(const StepPlan& plan) {
  std::vector<std::string_view> result;
  for (const Op& op : plan.ops) result.push_back(op.name);
  return result;
}

// What BLOOM and Falcon have in common.
ModelShape layer_norm_model(BlockKind block) {
  ModelShape model = small_model();
  model.norm = NormKind::layer_norm;
  model.kinds[0].mlp.kind = MlpKind::plain;
  model.kinds[0].mlp.activation = ActivationKind::gelu;
  model.kinds[0].block = block;
  return model;
}

TEST_CASE("a BLOOM layer: LayerNorm with a bias, biases of matrices, no rotation, a norm after the embedding") {
  ModelShape model = layer_norm_model(BlockKind::sequential);
  model.kinds[0].gqa().position.kind = PositionKind::alibi;
  model.embedding_norm = model.kinds[0].gqa().qkv_bias = model.kinds[0].gqa().output_bias = model.kinds[0].mlp.bias =
      true;
  const StepPlan plan = plan_step(model, {}, uniform_batch(Phase::decode, 2, 100));
  CHECK(names(plan) == std::vector<std::string_view>{"embed_tokens", "word_embeddings_layernorm", "input_layernorm",
                                                     "qkv_proj", "rope_and_cache", "attention_decode", "o_proj",
                                                     "post_attention_layernorm", "up_proj", "gelu", "down_proj", "norm",
                                                     "lm_head"});
  const Op& embedding_norm = find(plan, "word_embeddings_layernorm");
  CHECK(embedding_norm.kind == OpKind::layer_norm);
  CHECK(embedding_norm.stage == Stage::before_layers);
  CHECK(embedding_norm.count == 1);
  CHECK(operand(embedding_norm, OperandRole::weight).unique.value() == 2 * 32 * 2);
  CHECK(operand(embedding_norm, OperandRole::activation).unique.value() == 2 * 32 * 2);
  CHECK(operand(find(plan, "input_layernorm"), OperandRole::activation).unique.value() == 2 * 2 * 32 * 2);
  const Op& qkv = find(plan, "qkv_proj");
  CHECK(qkv.flops.value() == 2.0 * 2 * 64 * 32 + 2 * 64);
  REQUIRE(qkv.operands().size() == 4);
  CHECK(qkv.operands()[3].role == OperandRole::weight);
  CHECK(qkv.operands()[3].unique.value() == 64 * 2);
  CHECK(find(plan, "lm_head").operands().size() == 3);
  CHECK(find(plan, "up_proj").n == 80);
  // K and V are read and written, Q stays where it is.
  const Op& cache = find(plan, "rope_and_cache");
  CHECK(cache.flops.value() == 0);
  CHECK(operand(cache, OperandRole::activation).unique.value() == 2 * 2 * 16 * 2);
  CHECK(operand(cache, OperandRole::kv_write).unique.value() == 2 * 2 * 16 * 2);
  CHECK(cache.operands().size() == 2);
  CHECK(find(plan, "attention_decode").flops.value() == 200 * (4.0 * 32 + 2 * 4));
}

TEST_CASE("a Falcon layer: attention beside the MLP, whose sum the next norm adds to the residual") {
  const StepPlan one = plan_step(layer_norm_model(BlockKind::parallel), {}, uniform_batch(Phase::decode, 2, 100));
  CHECK(names(one) == std::vector<std::string_view>{"embed_tokens", "input_layernorm", "qkv_proj", "rope_and_cache",
                                                    "attention_decode", "o_proj", "up_proj", "gelu", "down_proj",
                                                    "norm", "lm_head"});
  CHECK(operand(find(one, "input_layernorm"), OperandRole::activation).unique.value() == 3 * 2 * 32 * 2);
  CHECK(operand(find(one, "norm"), OperandRole::activation).unique.value() == 3 * 2 * 32 * 2);
  CHECK(one.ops[2].operands().size() == 3);

  const StepPlan two =
      plan_step(layer_norm_model(BlockKind::parallel_two_norms), {}, uniform_batch(Phase::decode, 2, 100));
  CHECK(two.ops.size() == one.ops.size() + 1);
  const Op& second = find(two, "post_attention_layernorm");
  CHECK(operand(second, OperandRole::activation).unique.value() == 2 * 32 * 2);
  CHECK(operand(second, OperandRole::output).unique.value() == 2 * 32 * 2);
}

TEST_CASE("every op reads what an op before it wrote") {
  for (const BlockKind block : {BlockKind::sequential, BlockKind::parallel, BlockKind::parallel_two_norms}) {
    const StepPlan plan = plan_step(layer_norm_model(block), {}, uniform_batch(Phase::decode, 2, 100));
    std::vector<Buffer> written;
    for (const Op& op : plan.ops) {
      CAPTURE(op.name);
      const auto holds = [&](Buffer buffer) { return std::ranges::count(written, buffer) > 0; };
      CHECK((op.input == Buffer::none || holds(op.input)));
      for (const Buffer added : op.added) CHECK((added == Buffer::none || op.adds_layer_before || holds(added)));
      REQUIRE(op.output != Buffer::none);
      written.push_back(op.output);
    }
    CHECK(written.back() == Buffer::logits);
  }
}

[[nodiscard]] Bytes weights_read(const StepPlan& plan) {
  Bytes weights;
  for (const Op& op : plan.ops)
    for (const Operand& each : op.operands())
      if (each.role == OperandRole::weight) weights += each.unique * op.count;
  return weights;
}

std::vector<std::string_view> layer_names(const StepPlan& plan) {
  std::vector<std::string_view> result;
  for (const Op& op : plan.ops)
    if (op.stage == Stage::layer) result.push_back(op.name);
  return result;
}

TEST_CASE("norms stand before, after or on both sides of a layer's halves, and Q and K have norms where they say so") {
  ModelShape model = small_model();
  model.kinds[0].gqa().qk_norm = QkNorm::per_head;
  model.kinds[0].norms = NormPlacement::sandwich;
  const StepPlan sandwich = plan_step(model, {}, uniform_batch(Phase::decode, 2, 100));
  CHECK(layer_names(sandwich) ==
        std::vector<std::string_view>{"input_layernorm", "qkv_proj", "qk_norm", "rope_and_cache", "attention_decode",
                                      "o_proj", "attention_post_norm", "post_attention_layernorm", "gate_up_proj",
                                      "silu_and_mul", "down_proj", "mlp_post_norm"});
  CHECK(find(sandwich, "attention_post_norm").input == Buffer::projected);
  CHECK(find(sandwich, "attention_post_norm").output == Buffer::projected);
  CHECK(operand(find(sandwich, "qk_norm"), OperandRole::weight).unique.value() == 2 * 8 * 2);
  CHECK(find(sandwich, "qk_norm").n == 32 + 16);
  model.kinds[0].norms = NormPlacement::post;
  model.kinds[0].gqa().qk_norm = QkNorm::whole;
  model.final_logit_soft_cap = 30;
  const StepPlan post = plan_step(model, {}, uniform_batch(Phase::decode, 2, 100));
  CHECK(layer_names(post) == std::vector<std::string_view>{"residual_add", "qkv_proj", "qk_norm", "rope_and_cache",
                                                           "attention_decode", "o_proj", "attention_post_norm",
                                                           "residual_add", "gate_up_proj", "silu_and_mul", "down_proj",
                                                           "mlp_post_norm"});
  CHECK(find(post, "residual_add").adds_layer_before);
  CHECK(operand(find(post, "qk_norm"), OperandRole::weight).unique.value() == (32 + 16) * 2);
  CHECK(post.ops.back().kind == OpKind::soft_cap);
}

TEST_CASE("layers of different kinds have their own ops, each counted by the layers of its kind") {
  ModelShape model = small_model();
  LayerKind windowed = model.kinds[0];
  windowed.gqa().sliding_window = 64;
  const LayerKind full = model.kinds[0];
  model.kinds.clear(), model.layers.clear();
  for (int layer = 0; layer < 5; ++layer) add_layer(model, layer % 3 == 2 ? full : windowed);
  REQUIRE(model.kinds.size() == 2);
  CHECK(model.num_layers(0) == 4);
  const StepPlan plan = plan_step(model, {}, uniform_batch(Phase::decode, 1, 1000));
  std::vector<double> context;
  for (const Op& op : plan.ops) {
    if (op.stage != Stage::layer) continue;
    CHECK(op.count == (op.layer_kind == 0 ? 4 : 1));
    if (op.kind == OpKind::attention_decode) context.push_back(op.attention.context_tokens);
  }
  REQUIRE(context.size() == 2);
  CHECK(context[0] < 200);
  CHECK(context[1] == 1000);
}

TEST_CASE("a plan reads every weight of the footprint once") {
  for (const BlockKind block : {BlockKind::sequential, BlockKind::parallel, BlockKind::parallel_two_norms}) {
    ModelShape model = layer_norm_model(block);
    model.kinds[0].gqa().qkv_bias = model.kinds[0].gqa().output_bias = model.kinds[0].mlp.bias = model.embedding_norm =
        true;
    const StepPlan plan = plan_step(model, {}, uniform_batch(Phase::decode, 100, 10));  // every token once
    CHECK(weights_read(plan) == weight_footprint(model, {}));
  }
  ModelShape model = small_model();
  model.kinds[0].gqa().qk_norm = QkNorm::whole;
  for (const NormPlacement norms : {NormPlacement::pre, NormPlacement::post, NormPlacement::sandwich}) {
    model.kinds[0].norms = norms;
    CHECK(weights_read(plan_step(model, {}, uniform_batch(Phase::decode, 100, 10))) == weight_footprint(model, {}));
  }
}

}  // namespace
}  // namespace dculab
