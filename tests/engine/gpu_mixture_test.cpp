// Mixtures of experts with the GPU kernels, run on the host: the experts, logits and refusals of the CPU engine.
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "tests/engine/support/gpu_golden_steps.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// Random weights of a golden's shape, as wide as int4 kernels need.
ModelWeights random_mixture(const std::string& variant, std::optional<WeightFormat> format) {
  ModelShape shape = golden_weights(variant).shape;
  shape.hidden_size = 64;
  for (LayerKind& kind : shape.kinds) {
    kind.gqa().heads = {4, 2, 32};
    if (kind.mlp.intermediate_size > 0) kind.mlp.intermediate_size = 96;
    if (kind.experts) kind.experts->intermediate_size = 96;
  }
  shape.quantization = format;
  return random_weights(shape, 7);
}

}  // namespace

// Roundings to F16 of each layer, as gpu_logits_test.cpp counts them, and once of the embedding: K, V and the query; in
// F16 two norms, QKV, attention, o_proj, and of experts and shared experts gate and up, SiLU, down_proj, their sum and
// the last norm. Where two experts are nearly as good, they may move a token to the other.
TEST_CASE("mixtures on --device host-gpu: experts and logits are those of the CPU engine", "[gpu]") {
  int wave_size = 64;
  for (const std::string& variant : kMixtureVariants) {
    INFO(variant);
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = golden_weights(variant);
    const double layers = weights.shape.num_layers();
    CHECK(steps_of_other_experts(golden, weights, Dtype::f32, wave_size, (3 * layers + 1) * 0x1p-11) == 0);
    CHECK(steps_of_other_experts(golden, weights, Dtype::f16, wave_size, (15 * layers + 2) * 0x1p-11) <= 2);
    wave_size = 96 - wave_size;  // 64 and 32 in turn
  }
}

// With a BF16 cache, F32 sums in another order may round K and V to the next value: of each layer, both. Steps of a few
// tokens have the GEMV, those of 200 tiles of 32 rows and more.
TEST_CASE("mixtures on --device host-gpu: int4 and F16 experts give the CPU's logits", "[gpu]") {
  for (const char* const variant : {"mixtral", "qwen2_moe", "glm4_moe"})
    for (const bool is_int4 : {true, false}) {
      INFO(variant << (is_int4 ? ", int4" : ", f16"));
      const ModelWeights weights =
          random_mixture(variant, is_int4 ? std::optional(WeightFormat{Dtype::int4, 32}) : std::nullopt);
      const double tolerance = 2 * weights.shape.num_layers() * 0x1p-9;
      Stepper cpu(weights, {.kv_dtype = Dtype::bf16});
      Stepper gpu(host_gpu(32), weights, {.kv_dtype = Dtype::bf16, .limits = kGoldenLimits});
      CHECK(relative_difference(ragged_steps(gpu), ragged_steps(cpu)) <= tolerance);
      const std::vector<Feed> long_prompt{{9, Phase::prefill, tokens_from(4, 200)}};
      CHECK(relative_difference(gpu.step(long_prompt), cpu.step(long_prompt)) <= tolerance);
      CHECK(gpu.executor().take_expert_histogram().choices == cpu.executor().take_expert_histogram().choices);
    }
}

TEST_CASE("mixtures on --device host-gpu: a router that gives no number is one clear error", "[gpu]") {
  ModelWeights weights = golden_weights("mixtral");
  const std::vector<float> norm(static_cast<std::size_t>(weights.shape.hidden_size), std::numeric_limits<float>::max());
  kernels::WeightView& view = weights.layers[1][WeightSlot::mlp_norm].weights[0];
  view = {norm.data(), Dtype::f32, view.rows};
  Stepper gpu(host_gpu(), weights, {.kv_dtype = Dtype::f16});
  REQUIRE_THROWS_WITH(gpu.step({{0, Phase::prefill, {3, 4, 5}}}),
                      ContainsSubstring("layer 1: the router gives 3 of the step's tokens a logit that is NaN"));
}

TEST_CASE("mixtures that no GPU kernel serves are refused before anything runs", "[gpu]") {
  const auto refusal = [](const ModelWeights& weights, ActivationMode activations) {
    try {
      Stepper(host_gpu(), weights, {.kv_dtype = Dtype::f16, .activations = activations});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(refusal(random_mixture("mixtral", WeightFormat{Dtype::int4, 32}), ActivationMode::exact) == "none");
  CHECK(refusal(random_mixture("mixtral", WeightFormat{Dtype::int8, -1}), ActivationMode::int8) ==
        "int8 weights of experts are not supported on the GPU; use int4 or --device cpu");
  ModelWeights many = golden_weights("mixtral");
  many.shape.kinds[0].experts->num_experts = 513;
  CHECK(refusal(many, ActivationMode::exact) ==
        "513 experts are not supported on the GPU; there are kernels for 512 at most");
  many.shape.kinds[0].experts->num_experts = 512, many.shape.kinds[0].experts->num_experts_per_tok = 33;
  CHECK(refusal(many, ActivationMode::exact) ==
        "33 experts of a token are not supported on the GPU; there are kernels for 32 at most");
}

}  // namespace dculab::engine
