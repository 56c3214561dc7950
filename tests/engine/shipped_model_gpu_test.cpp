// The whole shipped model with the GPU kernels, run on the host, against the CPU engine.
#include "core/kv/table.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/generate/generator.hpp"
#include "engine/kv/kv_storage.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "kernels/gpu/open_device.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/gpu_variant.hpp"
#include "tests/engine/support/shipped_text.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

std::vector<std::vector<TokenId>> story_prompts(const std::filesystem::path& model) {
  const Tokenizer tokenizer = Tokenizer::load((model / "tokenizer.json").string());
  std::vector<std::vector<TokenId>> prompts;
  for (const char* prompt : {"Once upon a time", "The dog ran to the park, and", "Tom"})
    prompts.push_back(tokenizer.encode(prompt, SpecialTokens::add));
  return prompts;
}

// Prefill of all prompts in one step, then greedy decode of all together. Returns the tokens of each, in turns.
std::vector<TokenId> greedy_tokens(Stepper& stepper, const std::vector<std::vector<TokenId>>& prompts, int count) {
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    feeds.push_back({static_cast<SequenceId>(i), Phase::prefill, prompts[i]});
  std::vector<TokenId> tokens;
  for (int step = 0; step < count; ++step) {
    const std::vector<Logits> rows = stepper.step(feeds);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      tokens.push_back(best_token(rows[i]));
      feeds[i] = {feeds[i].sequence, Phase::decode, {tokens.back()}};
    }
  }
  return tokens;
}

// Every pair of two choices is among them.
constexpr GpuVariant kShippedGpuVariants[] = {{Dtype::f32, Dtype::bf16, 1, 64},  {Dtype::f32, Dtype::f16, 16, 32},
                                              {Dtype::f32, Dtype::bf16, 64, 32}, {Dtype::f16, Dtype::f16, 1, 32},
                                              {Dtype::f16, Dtype::bf16, 16, 64}, {Dtype::f16, Dtype::f16, 64, 64}};

// Enough tokens for every policy to drop some; where none does, so little memory that sequences are preempted.
std::vector<std::string> texts_on(DeviceKind device, const EngineOptions& engine) {
  GeneratorOptions options;
  options.device = {device, 0};
  options.engine = engine;
  options.num_threads = 2;
  const ModelShape shape = read_model_shape(kShippedModel);
  const int blocks = drops_tokens(engine.kv_retention.policy) ? 9 : 6;
  options.kv_cache_memory =
      blocks * kv_block_bytes(shape, engine) +
      engine.max_num_seqs * kv_residual_bytes(shape, engine.kv_cache_dtype, engine.kv_residual_tokens);
  Generator generator(kShippedModel, options);
  std::vector<TextRequest> requests;
  for (const char* prompt : {"Once upon a time", "The dog ran to the park, and"})
    requests.push_back({.prompt = prompt, .max_tokens = 10, .eos = EosHandling::ignore});
  const Generation generation = generator.generate(requests);
  CHECK((generation.report.num_preemptions > 0) == !drops_tokens(engine.kv_retention.policy));
  CHECK((generation.report.swaps.preemptions > 0) == (engine.preemption_mode == PreemptionMode::swap));
  std::vector<std::string> texts;
  for (const Completion& completion : generation.completions) texts.push_back(completion.text);
  return texts;
}

void check_same_texts(EngineOptions engine) {
  INFO(name(engine.kv_retention.policy) << ", KV in " << name(engine.kv_cache_dtype));
  engine.block_size = 4;
  engine.max_num_seqs = 2;
  engine.max_num_batched_tokens = 64;
  CHECK(texts_on(DeviceKind::host_gpu, engine) == texts_on(DeviceKind::cpu, engine));
}

KvRetention retention_of(RetentionPolicy policy) {
  return {.policy = policy, .sink_tokens = 4, .window_tokens = 9, .heavy_hitter_tokens = 5, .kv_budget = 0.5};
}

// All that go with one another and with a GPU.
std::vector<KvChoice> choices_on_gpu() {
  std::vector<KvChoice> choices;
  for (const KvPolicy& policy : kKvPolicies)
    for (const KvFormat& format : kKvFormats) {
      const KvChoice choice{format.dtype, policy.policy};
      if (combines(choice, KvFeature::gpu) && combines(choice, KvFeature::each_other)) choices.push_back(choice);
    }
  return choices;
}

}  // namespace

TEST_CASE("the shipped model writes the CPU's text on host-gpu in every format and policy", "[gpu]") {
  std::size_t turn = 0;
  for (const auto& [dtype, policy] : choices_on_gpu()) {
    if (thinned_out(turn++, 3)) continue;
    EngineOptions engine;
    engine.kv_retention = retention_of(policy);
    engine.kv_cache_dtype = dtype;
    // Cached values are rounded so coarsely that halves' roundings before would show.
    engine.activation_dtype = bits(dtype) == 16 ? Dtype::f16 : Dtype::f32;
    check_same_texts(engine);
  }
  CHECK(turn >= 24);
}

// Texts of which half is quantized, in so little memory that sequences are preempted.
TEST_CASE("the shipped model writes the CPU's text on host-gpu in kivi4 and kivi2", "[gpu]") {
  const ModelShape shape = load_weights(kShippedModel).shape;
  for (const Dtype dtype : {Dtype::kivi4, Dtype::kivi2}) {
    INFO(name(dtype));
    GeneratorOptions options;
    options.num_threads = 2;
    options.engine.kv_cache_dtype = dtype;
    options.engine.kv_residual_tokens = 32;
    options.engine.activation_dtype = Dtype::f32;
    options.engine.block_size = 4;
    options.engine.max_num_seqs = 2;
    options.engine.max_num_batched_tokens = 24;
    constexpr int kTokens = kSanitized ? 6 : 16, kBlocks = kSanitized ? 24 : 26;
    options.kv_cache_memory = kBlocks * kv_block_bytes(shape, options.engine) +
                              options.engine.max_num_seqs * kv_residual_bytes(shape, dtype, 32);
    const auto texts = [&](DeviceKind device) {
      options.device = {device, 0};
      Generator generator(kShippedModel, options);
      std::vector<TextRequest> requests;
      for (const char* prompt :
           {"Once upon a time there was a little girl who lived near the meadow. She liked to spend time with Kate and "
            "Grandpa. It was raining, so she put on a warm coat. Olive and Kate wanted to build a house",
            "The dog ran to the park, and there was a frog. Tom wanted to become a baker. He needed wood, nails and a "
            "long rope. They worked from morning until evening. But in the night it rained"})
        requests.push_back({.prompt = prompt, .max_tokens = kTokens, .eos = EosHandling::ignore});
      const Generation generation = generator.generate(requests);
      CHECK(generation.report.num_preemptions > 0);
      return std::pair(generation.completions[0].text, generation.completions[1].text);
    };
    CHECK(texts(DeviceKind::host_gpu) == texts(DeviceKind::cpu));
  }
}

TEST_CASE("the shipped model writes the CPU's text on host-gpu when sequences are swapped", "[gpu]") {
  EngineOptions engine;
  engine.preemption_mode = PreemptionMode::swap;
  engine.swap_space = Bytes(1 << 20);
  check_same_texts(engine);
  engine.kv_retention = retention_of(RetentionPolicy::critical_blocks);
  check_same_texts(engine);
}

TEST_CASE("the whole shipped model on --device host-gpu gives the CPU engine's greedy tokens", "[gpu]") {
  const ModelWeights weights = load_weights(kShippedModel);
  const auto prompts = story_prompts(kShippedModel);
  constexpr int kTokens = kSanitized ? 2 : 6;
  Stepper cpu(weights);
  const std::vector<TokenId> expected = greedy_tokens(cpu, prompts, kTokens);
  std::size_t turn = 0;
  for (const GpuVariant& variant : kShippedGpuVariants) {
    if (thinned_out(turn++, 3)) continue;
    INFO(name(variant.activation) << " activations, " << name(variant.kv) << " KV, blocks of " << variant.block_size
                                  << ", waves of " << variant.wave_size);
    Stepper gpu(kernels::gpu::open_host_device({.wave_size = variant.wave_size}), weights,
                {.block_size = variant.block_size,
                 .kv_dtype = variant.kv,
                 .num_tokens = 256,
                 .activation_dtype = variant.activation});
    CHECK(greedy_tokens(gpu, prompts, kTokens) == expected);
  }
}

TEST_CASE("shipped models with latent and cross-layer attention give the CPU engine's greedy tokens on host-gpu",
          "[gpu]") {
  for (const char* const name : {"dculab-tiny-mla-moe", "dculab-tiny-cla2"}) {
    INFO(name);
    const ModelWeights weights = load_weights(kModels / name);
    const auto prompts = story_prompts(kModels / name);
    constexpr int kTokens = kSanitized ? 2 : 6;
    Stepper cpu(weights);
    Stepper gpu(kernels::gpu::open_host_device({}), weights,
                {.kv_dtype = Dtype::f16, .num_tokens = 256, .activation_dtype = Dtype::f16});
    CHECK(greedy_tokens(gpu, prompts, kTokens) == greedy_tokens(cpu, prompts, kTokens));
  }
}

}  // namespace dculab::engine
