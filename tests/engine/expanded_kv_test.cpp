// What latents expand to on the CPU: part after part with the same bits, in memory that is bounded and set aside.
#include <optional>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/executors/open_executor.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

ModelWeights latent_weights(std::optional<WeightFormat> format) {
  ModelShape shape = load_weights(kFamilyFolder / "deepseek_v3").shape;
  shape.quantization = format;
  return random_weights(shape, 11);
}

}  // namespace

// Room for no more than the fewest heads of one sequence: of packed weights those of a strip of 16 rows.
TEST_CASE("latents: expanded head by head, sequence by sequence, they give the same bits in every format") {
  for (const std::optional<WeightFormat>& format :
       {std::optional<WeightFormat>(), std::optional(WeightFormat{Dtype::int4, 8}),
        std::optional(WeightFormat{Dtype::fp8_e4m3, 0})}) {
    const ModelWeights weights = latent_weights(format);
    INFO(name(weights.shape.layer_format().dtype));
    const std::vector<Feed> prompts{{0, Phase::prefill, random_tokens(150, 96)},
                                    {1, Phase::prefill, random_tokens(3, 96)},
                                    {2, Phase::prefill, random_tokens(70, 96)}};
    Stepper whole(weights), by_head(weights, {.expanded_kv = Bytes(1)}), some(weights, {.expanded_kv = Bytes(60000)});
    const std::vector<Logits> expected = whole.step(prompts);
    CHECK(by_head.step(prompts) == expected);
    CHECK(some.step(prompts) == expected);
    const StepPlan plan = by_head.plan({{3, Phase::prefill, random_tokens(100, 96)}});
    const StepResult result = by_head.executor().run(plan);
    for (const Seconds duration : result.op_durations) CHECK(duration > Seconds());
  }
}

TEST_CASE("latents: what they expand to at a time is bounded, and set aside before the KV cache") {
  ModelShape shape = latent_weights({}).shape;
  constexpr double kMiB = 1 << 20;
  // Of a piece of 256 tokens: the latent, the rotated key, and what kv_b_proj gives for all heads.
  const kernels::LatentSizes sizes = latent_sizes(*shape.kinds.front().mla());
  const Bytes piece(256.0 * 4 *
                    (sizes.kv_lora_rank + sizes.qk_rope_head_dim + sizes.num_heads * sizes.expanded_head_dim()));
  CHECK(lower::dculab_cpu::expanded_memory(shape, Bytes(64 * kMiB)) == Bytes(64 * kMiB) + piece);
  shape.max_position_embeddings = 1 << 20;  // one head's: 24 + 24 values of F32
  CHECK(lower::dculab_cpu::expanded_memory(shape, Bytes(64 * kMiB)) == Bytes(192 * kMiB) + piece);
  CHECK(memory_besides_kv({}, shape, {}) == Bytes(192 * kMiB) + piece);
  CHECK(memory_besides_kv({}, load_weights(kGoldenFolder / "text").shape, {}) == Bytes());
}

}  // namespace dculab::engine
