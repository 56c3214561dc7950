// Latent and cross-layer attention with the GPU kernels, run on the host: the logits and tokens of the CPU engine.
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/counting_device.hpp"
#include "tests/engine/support/gpu_golden_steps.hpp"
#include "tests/engine/support/gpu_latents.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

std::string gpu_refusal(const ModelWeights& weights, const StepperOptions& options) {
  try {
    Stepper(host_gpu(), weights, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

// Where two experts are nearly as good, roundings may move a token to the other.
TEST_CASE("latents on --device host-gpu: experts and logits are those of the CPU engine", "[gpu]") {
  int wave_size = 64;
  for (const std::string& variant : kLatentVariants) {
    INFO(variant);
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    for (const Dtype activation : {Dtype::f32, Dtype::f16}) {
      const double tolerance = latent_tolerance(weights.shape, activation);
      const bool has_close_experts = variant == "deepseek_v3";  // one step with F32
      const int allowed = !has_close_experts ? 0 : activation == Dtype::f32 ? 1 : 2;
      CHECK(steps_of_other_experts(golden, weights, activation, wave_size, tolerance) <= allowed);
    }
    wave_size = 96 - wave_size;  // 64 and 32 in turn
  }
}

TEST_CASE("latents and shared K and V on --device host-gpu: greedy tokens are those of transformers", "[gpu]") {
  std::vector<std::string> variants = kLatentVariants;
  variants.insert(variants.end(), kCrossLayerVariants.begin(), kCrossLayerVariants.end());
  for (const std::string& variant : variants) {
    INFO(variant);
    const GoldenModel golden(variant, kFamilyFolder);
    const std::vector<GoldenPrompt> prompts = golden.prompts();
    Stepper stepper(host_gpu(), golden_weights(variant),
                    {.kv_dtype = Dtype::f16, .num_tokens = 512, .limits = kGoldenLimits});
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < prompts.size(); ++i)
      feeds.push_back({static_cast<SequenceId>(i), Phase::prefill, prompts[i].tokens});
    for (std::size_t token = 0; token < (kSanitized ? 3 : prompts[0].greedy.size()); ++token) {
      const std::vector<Logits> rows = stepper.step(feeds);
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        REQUIRE(best_token(rows[i]) == prompts[i].greedy[token]);
        feeds[i] = {static_cast<SequenceId>(i), Phase::decode, {prompts[i].greedy[token]}};
      }
    }
  }
}

TEST_CASE("shared K and V on --device host-gpu: logits are those of the CPU engine, and layers share a cache",
          "[gpu]") {
  const ModelWeights weights = golden_weights("cla");
  for (const int wave_size : {64, 32}) {
    Stepper cpu(weights, {.kv_dtype = Dtype::f16}), gpu(host_gpu(wave_size), weights, {.kv_dtype = Dtype::f16});
    CHECK(relative_difference(ragged_steps(gpu), ragged_steps(cpu)) <= (3 * 4 + 1) * 0x1p-11);
  }
  const GpuKvStorage storage(host_gpu(), weights.shape, {.num_blocks = 4});
  CHECK(storage.layer(0).k == storage.layer(1).k);
  CHECK(storage.layer(0).v == storage.layer(3).v);
  CHECK(storage.layer(2).k != storage.layer(0).k);
}

TEST_CASE("latents and shared K and V on --device host-gpu: a sequence goes on from copies of its blocks", "[gpu]") {
  for (const ModelWeights& weights : {random_weights(latent_shape(), 30), golden_weights("cla")})
    for (const Dtype dtype : {Dtype::f16, Dtype::fp8_e4m3}) {
      INFO(weights.shape.name << " " << name(dtype));
      const StepperOptions options{.block_size = 4, .kv_dtype = dtype, .num_tokens = 256};
      Stepper moved(host_gpu(), weights, options), plain(host_gpu(), weights, options);
      const std::vector<Feed> prompt{{0, Phase::prefill, tokens_from(1, 30)}}, next{{0, Phase::decode, {7}}};
      REQUIRE(moved.step(prompt) == plain.step(prompt));
      const auto unused = static_cast<BlockId>(moved.executor().kv_cache().num_blocks - 1);
      moved.executor().copy_blocks(std::vector<BlockCopy>{{moved.blocks(0)[0], unused}});
      const BlockId first = std::exchange(moved.blocks(0)[0], unused);
      moved.executor().copy_blocks(std::vector<BlockCopy>{{moved.blocks(0)[1], first}});  // what was there is gone
      CHECK(moved.step(next) == plain.step(next));
    }
}

TEST_CASE("latents on --device host-gpu: each form in each phase, from every cache", "[gpu]") {
  const ModelWeights weights = random_weights(latent_shape(), 21);
  for (const auto& [dtype, roundoff] :
       {std::pair{Dtype::f16, 0x1p-11}, {Dtype::bf16, 0x1p-9}, {Dtype::fp8_e4m3, 0x1p-4}, {Dtype::fp8_e5m2, 0x1p-3}}) {
    Stepper cpu(weights, {.kv_dtype = dtype});
    const std::vector<Logits> expected = ragged_steps(cpu);
    for (const LatentForm prefill : {LatentForm::expand, LatentForm::absorb})
      for (const LatentForm decode : {LatentForm::expand, LatentForm::absorb}) {
        if (dtype != Dtype::f16 && prefill != decode) continue;
        INFO(name(dtype) << ", prefill " << static_cast<int>(prefill) << ", decode " << static_cast<int>(decode));
        Stepper gpu(host_gpu(dtype == Dtype::bf16 ? 32 : 64), weights,
                    {.block_size = 4, .kv_dtype = dtype, .prefill_latents = prefill, .decode_latents = decode});
        // Another last bit may round a value to the next one of the cache: of each layer's latents, one value.
        const int width = weights.shape.kinds[0].mla()->latent_width();
        CHECK(relative_difference(ragged_steps(gpu), expected) <=
              latent_tolerance(weights.shape, Dtype::f32) + weights.shape.num_layers() * roundoff / width);
      }
  }
}

// With no room for two heads, latents are expanded head by head: the same bits.
TEST_CASE("latents on --device host-gpu: chunks, and heads that are expanded one by one, give what one step gives",
          "[gpu]") {
  const ModelWeights weights = random_weights(latent_shape(), 22);
  const std::vector<TokenId> prompt = tokens_from(3, 90);
  StepperOptions options{.kv_dtype = Dtype::f16, .limits = kGoldenLimits};
  Stepper whole(host_gpu(), weights, options);
  const std::vector<Logits> expected =
      whole.step({{0, Phase::prefill, prompt}, {1, Phase::prefill, tokens_from(5, 7)}});
  options.limits.expanded_kv = Bytes(1);
  Stepper by_head(host_gpu(), weights, options);
  CHECK(by_head.step({{0, Phase::prefill, prompt}, {1, Phase::prefill, tokens_from(5, 7)}}) == expected);
  Stepper chunked(host_gpu(32), weights, options);
  const Logits last = prefill_in_chunks(chunked, 0, prompt, 37);
  CHECK(relative_difference({last}, {expected[0]}) <= latent_tolerance(weights.shape, Dtype::f32));
}

// More tokens than one product expands, in several blocks, the last ones few.
TEST_CASE("latents on --device host-gpu: contexts of several expanded pieces give the CPU's logits", "[gpu]") {
  namespace gpu = lower::dculab_gpu;
  constexpr int kBefore = gpu::kExpandedPiece - 4, kChunk = 40;
  static_assert(kBefore + kChunk > gpu::kExpandedPiece && kBefore > 2 * gpu::kExpandedBlock);
  const ModelWeights weights = random_weights(with_layers(latent_shape(2048), 1), 29);
  StepperOptions options{.kv_dtype = Dtype::f16, .num_tokens = 1200, .limits = kGoldenLimits};
  options.limits.max_num_batched_tokens = gpu::kExpandedPiece;
  Stepper cpu(weights, options), on_gpu(host_gpu(), weights, options);
  const std::vector<Feed> first{{0, Phase::prefill, tokens_from(3, kBefore)}};
  const std::vector<Feed> chunk{{0, Phase::prefill, tokens_from(4, kChunk)}};
  const std::vector<Feed> next{{0, Phase::decode, {9}}};
  for (const auto* feeds : {&first, &chunk, &next})
    CHECK(relative_difference(on_gpu.step(*feeds), cpu.step(*feeds)) <= latent_tolerance(weights.shape, Dtype::f32));
}

TEST_CASE("latents on --device host-gpu: long contexts in partitions give the CPU's logits", "[gpu]") {
  const ModelWeights weights = random_weights(latent_shape(), 23);
  const std::vector<Feed> prompts{{0, Phase::prefill, tokens_from(1, 100)}, {1, Phase::prefill, tokens_from(2, 20)}};
  const std::vector<Feed> next{{0, Phase::decode, {9}}, {1, Phase::decode, {10}}};
  Stepper cpu(weights, {.kv_dtype = Dtype::f16});
  static_cast<void>(cpu.step(prompts));
  const std::vector<Logits> expected = cpu.step(next);
  for (const int partition_tokens : {0, 16, 40}) {
    Stepper gpu(host_gpu(), weights, {.kv_dtype = Dtype::f16, .partition_tokens = partition_tokens});
    static_cast<void>(gpu.step(prompts));
    CHECK(relative_difference(gpu.step(next), expected) <= latent_tolerance(weights.shape, Dtype::f32));
  }
}

TEST_CASE("latents on --device host-gpu: time goes to the op that takes it", "[gpu]") {
  const ModelWeights weights = random_weights(latent_shape(), 24);
  Stepper gpu(host_gpu(), weights, {.kv_dtype = Dtype::f16});
  const StepPlan plan = gpu.plan({{0, Phase::prefill, tokens_from(1, 30)}, {1, Phase::prefill, tokens_from(2, 9)}});
  const StepResult result = gpu.executor().run(plan);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    INFO(plan.ops[i].name);
    CHECK(result.op_durations[i].value() > 0);
  }
}

// Q, K and V, gate and up are one matrix: their blocks of scales need not begin where blocks of that do.
TEST_CASE("FP8 mixtures and latents on --device host-gpu give the CPU's logits", "[gpu]") {
  for (const char* const variant : {"qwen2_moe", "deepseek_v3"}) {
    INFO(variant);
    ModelShape shape = golden_weights(variant).shape;
    shape.quantization = WeightFormat{Dtype::fp8_e4m3, 0};
    const ModelWeights weights = random_weights(shape, 25);
    Stepper cpu(weights, {.kv_dtype = Dtype::f16}), gpu(host_gpu(32), weights, {.kv_dtype = Dtype::f16});
    CHECK(relative_difference(ragged_steps(gpu), ragged_steps(cpu)) <= latent_tolerance(shape, Dtype::f32));
  }
}

// kv_b_proj is of the attention, which checkpoints with int4 experts often leave as it is.
TEST_CASE("int4 mixtures whose latents are plain on --device host-gpu give the CPU's logits", "[gpu]") {
  ModelShape shape = latent_shape();
  for (LayerKind& kind : shape.kinds) {
    kind.mlp.intermediate_size = 96;
    if (kind.experts) kind.experts->intermediate_size = 96;
  }
  shape.quantization = WeightFormat{Dtype::int4, 32};
  shape.plain.attention = true;
  const ModelWeights weights = random_weights(shape, 31);
  Stepper cpu(weights, {.kv_dtype = Dtype::f16}), gpu(host_gpu(), weights, {.kv_dtype = Dtype::f16});
  CHECK(relative_difference(ragged_steps(gpu), ragged_steps(cpu)) <= latent_tolerance(shape, Dtype::f32));
}

// With room for one sequence's partial results, sequences are served one by one: the same bits.
TEST_CASE("decodes on --device host-gpu whose partial results do not fit are served in runs", "[gpu]") {
  for (const ModelWeights& weights : {random_weights(latent_shape(), 26), random_weights(small_model(2), 27)}) {
    StepperOptions options{.kv_dtype = Dtype::f16, .partition_tokens = 16};
    Stepper whole(host_gpu(), weights, options);
    options.limits.decode_partials = Bytes(1);
    Stepper by_sequence(host_gpu(), weights, options);
    const std::vector<Feed> prompts{{0, Phase::prefill, tokens_from(1, 60)}, {1, Phase::prefill, tokens_from(2, 20)}};
    const std::vector<Feed> next{{0, Phase::decode, {9}}, {1, Phase::decode, {10}}};
    CHECK(whole.step(prompts) == by_sequence.step(prompts));
    CHECK(whole.step(next) == by_sequence.step(next));
  }
}

TEST_CASE("a GPU executor takes no more memory than is set aside for it", "[gpu]") {
  for (const ModelShape& shape : {latent_shape(), small_model(2)}) {
    const auto device = std::make_shared<CountingDevice>(kernels::gpu::open_host_device({}));
    const StepperOptions options{.kv_dtype = Dtype::f16};
    Stepper stepper(device, random_weights(shape, 28), options);
    const KvCacheOptions kv = stepper.executor().kv_cache();
    const Bytes expected = weight_footprint(shape, shape.layer_format()) +
                           kv_bytes_per_token(shape, kv.dtype) * kv.block_size * kv.num_blocks +
                           gpu_step_memory(shape, Dtype::f32, options.limits, 512, kv.block_size);
    constexpr double kPairs = 2048, kEmpty = 256;  // of copy_blocks; a byte each for tensors that are not there
    CHECK(static_cast<double>(device->counts().allocated) <= expected.value() + kPairs + kEmpty);
    CHECK(static_cast<double>(device->counts().allocated) > 0.9 * expected.value());
  }
}

// The first layer's MLP is wider than the shared experts of the others, whose k is cut into more parts.
TEST_CASE("the GPU's workspace holds the partial results of every matrix of every kind of layers") {
  namespace gpu = lower::dculab_gpu;
  ModelShape shape = read_model_shape(std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models/deepseek-v2-lite");
  REQUIRE(shape.kinds.size() == 2);
  const std::pair<int, int> matrices[] = {{16 * 192 + 576, 2048},
                                          {2048, 16 * 128},  // attention
                                          {2 * 10944, 2048},
                                          {2048, 10944},  // the first layer's MLP
                                          {2 * 2816, 2048},
                                          {2048, 2816},  // shared experts
                                          {64, 2048},
                                          {102400, 2048}};  // router, lm_head
  for (const int tokens : {9, 64, 200, 512}) {
    const GpuStepLimits limits{.max_num_batched_tokens = tokens, .max_num_seqs = 8};
    const std::size_t floats = gpu_workspace_floats(shape, limits, 0, 4096);
    for (int m = 1; m <= tokens; ++m)
      for (const auto& [n, k] : matrices) {
        INFO(tokens << " tokens: " << m << " rows by [" << n << ", " << k << "]");
        REQUIRE(gpu::matmul_workspace(m, n, k) <= floats);
      }
  }
  const GpuStepLimits few{.max_num_batched_tokens = 64, .max_num_seqs = 8};
  CHECK(gpu_workspace_floats(shape, few, 0, 4096) >= 3 * 64 * 5632);
  // In int4, but for attention.
  shape.quantization = WeightFormat{Dtype::int4, 128};
  shape.plain.attention = true;
  const std::size_t floats = gpu_workspace_floats(shape, few, 0, 4096);
  for (int m = 1; m <= 64; ++m) {
    REQUIRE(gpu::gptq_matmul_workspace(m, 2 * 2816, 2048) <= floats);
    REQUIRE(gpu::matmul_workspace(m, 16 * 192 + 576, 2048) <= floats);
  }
}

TEST_CASE("latents that no GPU kernel serves are refused before anything runs", "[gpu]") {
  CHECK(gpu_refusal(golden_weights("deepseek_v2"), {.kv_dtype = Dtype::f16}) == "none");
  CHECK(gpu_refusal(golden_weights("deepseek_v2"), {.kv_dtype = Dtype::fp8_e4m3}) ==
        "latents of 16 values with keys of 8 are not supported on the GPU in kv_cache_dtype fp8_e4m3; use f16 or bf16, "
        "or --device cpu");
  ModelShape shape = latent_shape();
  shape.quantization = WeightFormat{Dtype::int4, 8};
  CHECK(gpu_refusal(random_weights(shape, 1), {.kv_dtype = Dtype::f16}) ==
        "latent attention whose kv_b_proj is in int4 is not supported on the GPU, which multiplies it head by head in "
        "f32, f16, bf16 or fp8_e4m3; use a checkpoint whose attention is not quantized, or --device cpu");
  ModelWeights wide = golden_weights("deepseek_v2");
  for (LayerKind& kind : wide.shape.kinds) std::get<Mla>(kind.attention).v_head_dim = 136;
  CHECK(gpu_refusal(wide, {.kv_dtype = Dtype::f16}) ==
        "v_head_dim 136 is not supported on the GPU; there are kernels for multiples of 8 up to 128");
}

}  // namespace dculab::engine
