// The GPU kernels, run on the host, on every family and on quantized weights: the greedy tokens of transformers.
#include <numeric>
#include <span>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/gpu_variant.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/engine/support/wide_heads.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

// The tokens that follow each prompt, in turns.
std::vector<TokenId> tokens_in_turns(const std::vector<GoldenPrompt>& prompts) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < prompts[0].greedy.size(); ++i)
    for (const GoldenPrompt& prompt : prompts) tokens.push_back(prompt.greedy[i]);
  return tokens;
}

std::vector<TokenId> best_tokens(const std::vector<Logits>& rows) {
  std::vector<TokenId> tokens;
  for (const Logits& row : rows) tokens.push_back(best_token(row));
  return tokens;
}

constexpr GpuVariant kFamilyGpuVariants[] = {{Dtype::f32, Dtype::f16, 1, 64},  {Dtype::f16, Dtype::f16, 16, 64},
                                             {Dtype::f32, Dtype::f16, 16, 32}, {Dtype::f16, Dtype::f16, 64, 32},
                                             {Dtype::f32, Dtype::f16, 64, 64}, {Dtype::f16, Dtype::f16, 1, 32}};

// Sanitized, the first tokens after each prompt are enough: later ones run the same code.
std::vector<GoldenPrompt> golden_prompts(const GoldenModel& golden) {
  std::vector<GoldenPrompt> prompts = golden.prompts();
  for (GoldenPrompt& prompt : prompts)
    if (kSanitized) prompt.greedy.resize(4);
  return prompts;
}

// In F32 and in F16; the models take turns in the rest. `turn`: which model it is.
void check_golden(const GoldenModel& golden, const ModelWeights& weights, std::size_t turn) {
  const std::vector<GoldenPrompt> prompts = golden_prompts(golden);
  const std::vector<TokenId> expected = tokens_in_turns(prompts);
  for (const GpuVariant& variant : std::span(kFamilyGpuVariants).subspan(turn % 3 * 2, kSanitized ? 1 : 2)) {
    INFO(golden.folder().filename() << ", " << name(variant.activation) << " activations, " << name(variant.kv)
                                    << " KV, blocks of " << variant.block_size << ", waves of " << variant.wave_size);
    Stepper gpu(host_gpu(variant.wave_size), weights,
                {.block_size = variant.block_size,
                 .kv_dtype = variant.kv,
                 .num_tokens = 512,
                 .activation_dtype = variant.activation,
                 .limits = {.max_num_batched_tokens = 256, .max_num_seqs = 8},
                 .partition_tokens = 32});
    CHECK(best_tokens(decode_together(gpu, prompts)) == expected);
  }
}

}  // namespace

TEST_CASE("every family on --device host-gpu gives the greedy tokens of transformers", "[families][gpu]") {
  std::size_t turn = 0;
  for (const std::string& variant : kFamilyVariants) {
    if (thinned_out(turn++, 3)) continue;
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    const bool has_wide_heads = weights.shape.heads().head_dim >= 32;
    const ModelWeights wide = has_wide_heads ? weights : with_wide_heads(weights);
    Stepper cpu(wide);  // the same model still
    REQUIRE(best_tokens(decode_together(cpu, golden.prompts())) == tokens_in_turns(golden.prompts()));
    check_golden(golden, wide, turn);
  }
}

TEST_CASE("GPTQ and AWQ checkpoints on --device host-gpu give the greedy tokens of transformers", "[gpu]") {
  std::size_t turn = 0;
  for (const char* variant : {"int4_desc_act", "int4_v2", "int3", "awq", "int2"}) {
    if (thinned_out(turn++, 3)) continue;
    const GoldenModel golden("../gptq/" + std::string(variant));
    const ModelWeights wide = with_wide_heads(load_weights(golden.folder()));
    Stepper cpu(wide);
    REQUIRE(best_tokens(decode_together(cpu, golden.prompts())) == tokens_in_turns(golden.prompts()));
    check_golden(golden, wide, turn);
  }
}

// In F32 with a BF16 cache, where the GPU rounds nothing that the CPU does not: in a random model any other rounding
// moves values to the next of 127 steps, and that to other tokens. A block of activations is a row in so small a model,
// so both round the same values by the same scales, and what is left are F32 sums in another order.
TEST_CASE("int8 weights with 8-bit activations give the CPU's logits on --device host-gpu", "[gpu]") {
  const ModelWeights weights = load_weights(kGoldenFolder / "../gptq/int8_channel");
  Stepper cpu(weights, {.kv_dtype = Dtype::bf16, .activations = ActivationMode::int8});
  const std::vector<Logits> expected = ragged_steps(cpu);
  for (const int wave_size : {64, 32}) {
    Stepper gpu(host_gpu(wave_size), with_wide_heads(weights),
                {.kv_dtype = Dtype::bf16, .activations = ActivationMode::int8});
    CHECK(relative_difference(ragged_steps(gpu), expected) <= 0x1p-18);
  }
}

TEST_CASE("Q, K and V with act-orders of their own are refused on the GPU, which gathers their input once", "[gpu]") {
  ModelShape shape = small_model(2, Dtype::f16);
  shape.hidden_size = 128;
  shape.kinds[0].mlp.intermediate_size = 192;
  shape.quantization = WeightFormat{Dtype::int4, 64};
  ModelWeights weights = random_weights(shape, 1);
  std::vector<std::int32_t> order(128);
  std::iota(order.rbegin(), order.rend(), 0);
  weights.layers[1][WeightSlot::qkv_proj].weights[kK].permutation = order.data();
  CHECK_THROWS_WITH(Stepper(host_gpu(), weights, {.kv_dtype = Dtype::f16}),
                    "the GPU engine needs one g_idx for Q, K and V (and for gate and up); use the CPU");
}

TEST_CASE("quantized weights that no GPU kernel serves are refused before anything runs", "[gpu]") {
  const auto refusal = [](WeightFormat format, ActivationMode activations) {
    ModelShape shape = small_model(2, Dtype::f16);
    shape.hidden_size = 128;
    shape.kinds[0].mlp.intermediate_size = 192;
    shape.quantization = format;
    try {
      Stepper(host_gpu(), random_weights(shape, 1), {.kv_dtype = Dtype::f16, .activations = activations});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  constexpr auto kExact = ActivationMode::exact, kInt8 = ActivationMode::int8;
  CHECK(refusal({Dtype::int4, 64}, kExact) == "none");
  CHECK(refusal({Dtype::int4, -1}, kExact) == "none");
  CHECK(refusal({Dtype::int4, 16}, kExact) ==
        "int4 weights in groups of 16 are not supported on the GPU; use groups of 32, 64 or 128, or one for each row "
        "(-1)");
  CHECK(refusal({Dtype::int4, 64}, kInt8) ==
        "int4 weights with 8-bit activations are not supported on the GPU; use --activations exact");
  CHECK(refusal({Dtype::fp8_e4m3, 0}, kExact) == "none");
  CHECK(refusal({Dtype::int8, -1}, kExact) ==
        "int8 weights with exact activations are not supported on the GPU; use --activations int8");
  CHECK(refusal({Dtype::int8, 64}, kInt8) ==
        "int8 weights in groups of 64 are not supported on the GPU; use one scale for each row (--group-size -1)");
}

}  // namespace dculab::engine
