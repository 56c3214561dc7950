// Processes that share a model give the logits of one process, whatever is divided.
#include <algorithm>
#include <csignal>
#include <cstring>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/parallel/ranked_executor.hpp"
#include "engine/parallel/weight_parts.hpp"
#include "model/shard.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

constexpr float kMostApart = 1e-4F;  // the issue's

constexpr Division kTwo{2, ExpertDivision::within_experts}, kTwoByExpert{2, ExpertDivision::by_expert};

[[nodiscard]] StepperOptions divided(const Division& division, Dtype kv_dtype = Dtype::f32) {
  return {.num_threads = division.tensor_parallel_size, .kv_dtype = kv_dtype, .division = division};
}

// A ragged step of prefills, one of a chunk beside decodes, and decodes.
[[nodiscard]] std::vector<Logits> run_steps(const ModelWeights& weights, const StepperOptions& options) {
  const std::vector<TokenId> tokens = random_tokens(200, weights.shape.vocab_size);
  const auto some = [&tokens](int first, int count) {
    return std::vector<TokenId>(tokens.begin() + first, tokens.begin() + first + count);
  };
  Stepper stepper(weights, options);
  std::vector<Logits> all;
  const auto step = [&](const std::vector<Feed>& feeds) {
    for (Logits& row : stepper.step(feeds)) all.push_back(std::move(row));
  };
  step({{0, Phase::prefill, some(0, 19)}, {1, Phase::prefill, some(19, 1)}, {2, Phase::prefill, some(20, 7)}});
  step({{3, Phase::prefill, some(40, 11)}, {0, Phase::decode, some(60, 1)}, {2, Phase::decode, some(61, 1)}});
  step({{1, Phase::decode, some(70, 1)}});  // of one token, which one rank routes
  for (int round = 0; round < 4; ++round)
    step({{0, Phase::decode, some(80 + round, 1)},
          {1, Phase::decode, some(90 + round, 1)},
          {3, Phase::decode, some(100 + round, 1)}});
  return all;
}

void require_alike(const std::vector<Logits>& divided, const std::vector<Logits>& whole) {
  REQUIRE(divided.size() == whole.size());
  for (std::size_t row = 0; row < whole.size(); ++row) {
    INFO("row " << row);
    REQUIRE(divided[row].size() == whole[row].size());
    REQUIRE(largest_difference(divided[row], whole[row].data()) <= kMostApart);
  }
}

[[nodiscard]] std::filesystem::path shipped(const std::string& model) {
  return std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models" / model;
}

// Random weights of a shape that a test needs.
[[nodiscard]] ModelWeights with_format(ModelShape shape, Dtype dtype, std::optional<WeightFormat> quantization) {
  shape.dtype = dtype;
  shape.quantization = quantization;
  return random_weights(shape, 3);
}

}  // namespace

TEST_CASE("two processes give the logits of one: dense models of transformers") {
  for (const std::string variant : {"mha", "gqa", "mqa", "tied", "rope_llama3"}) {
    INFO(variant);
    const GoldenModel golden(variant);
    const ModelWeights weights = load_weights(golden.folder());
    Stepper one(weights, {.num_threads = 1});
    const std::vector<Logits> expected = decode_together(one, golden.prompts());
    Stepper two(weights, divided(kTwo));
    require_alike(decode_together(two, golden.prompts()), expected);
  }
}

TEST_CASE("two processes give the logits of one: families, with biases, windows, ALiBi, soft caps, parallel blocks") {
  for (const std::string variant :
       {"llama_biases", "qwen2", "qwen3", "gemma2", "gemma3", "bloom", "falcon_7b", "falcon_40b", "falcon_rw",
        "starcoder2", "phi3", "glm4", "gpt_neox", "mistral", "internlm2", "cla", "olmo2"}) {
    INFO(variant);
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    if (!shard_problems(weights.shape, weights.shape.layer_format(), 2).empty()) {
      REQUIRE_THROWS_AS(Stepper(weights, divided(kTwo)), InputError);
      continue;
    }
    require_alike(run_steps(weights, divided(kTwo)), run_steps(weights, {.num_threads = 1}));
  }
}

TEST_CASE("two processes give the logits of one: mixtures, divided within experts and by expert") {
  for (const std::string variant : {"mixtral", "qwen2_moe", "qwen3_moe", "glm4_moe", "deepseek_v2", "deepseek_v3"}) {
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    const std::vector<Logits> expected = run_steps(weights, {.num_threads = 1});
    for (const Division& division : {kTwo, kTwoByExpert}) {
      INFO(variant << (division == kTwo ? ", within" : ", by expert"));
      require_alike(run_steps(weights, divided(division)), expected);
    }
  }
}

TEST_CASE("the shipped models are divided too, and every expert is counted once") {
  for (const std::string model : {"dculab-tiny", "dculab-tiny-gqa2", "dculab-tiny-mqa"}) {
    INFO(model);
    const ModelWeights weights = load_weights(shipped(model));
    require_alike(run_steps(weights, divided(kTwo)), run_steps(weights, {.num_threads = 1}));
  }
  const ModelWeights mixture = load_weights(shipped("dculab-tiny-mla-moe"));
  const std::vector<Logits> expected = run_steps(mixture, {.num_threads = 1});
  require_alike(run_steps(mixture, divided(kTwo)), expected);
  require_alike(run_steps(mixture, divided(kTwoByExpert)), expected);
  const auto histogram_with = [&mixture](const StepperOptions& options) {
    Stepper stepper(mixture, options);
    (void)stepper.step({{0, Phase::prefill, random_tokens(13, mixture.shape.vocab_size)}});
    return stepper.executor().take_expert_histogram();
  };
  const ExpertHistogram one = histogram_with({.num_threads = 1}), two = histogram_with(divided(kTwoByExpert));
  REQUIRE(two.choices == one.choices);
  REQUIRE(two.layer_steps == one.layer_steps);
  REQUIRE(two.touched_experts == one.touched_experts);
}

TEST_CASE("quantized layers are cut between groups: GPTQ's and others' packed integers, and FP8") {
  ModelShape shape = load_weights(shipped("dculab-tiny")).shape;
  shape.kinds[0].gqa().heads.num_key_value_heads = 4;
  shape.quantization.reset();
  for (const WeightFormat format : {WeightFormat{Dtype::int4, 128}, WeightFormat{Dtype::int4, 32},
                                    WeightFormat{Dtype::int8, -1}, WeightFormat{Dtype::fp8_e4m3, 0}}) {
    INFO(name(format.dtype) << " " << format.group_size);
    const ModelWeights weights = with_format(shape, Dtype::f16, format);
    require_alike(run_steps(weights, divided(kTwo)), run_steps(weights, {.num_threads = 1}));
  }
  const GoldenModel golden("dculab_int4", std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/gptq");
  const ModelWeights gptq = load_weights(golden.folder());
  if (shard_problems(gptq.shape, gptq.shape.layer_format(), 2).empty())
    require_alike(run_steps(gptq, divided(kTwo)), run_steps(gptq, {.num_threads = 1}));
  else
    REQUIRE_THROWS_AS(Stepper(gptq, divided(kTwo)), InputError);
}

TEST_CASE("rows that begin within a strip of packed weights are packed anew") {
  ModelShape shape = load_weights(shipped("dculab-tiny")).shape;
  shape.kinds[0].gqa().heads = {4, 4, 40};  // 2 heads of 40 are five strips; a head alone is none
  shape.hidden_size = 160;
  shape.kinds[0].mlp.intermediate_size = 3 * 80;
  const ModelWeights weights = with_format(shape, Dtype::f32, WeightFormat{Dtype::int4, 40});
  const std::vector<Logits> expected = run_steps(weights, {.num_threads = 1});
  require_alike(run_steps(weights, divided({2, ExpertDivision::within_experts})), expected);
}

TEST_CASE(
    "three and four processes, a vocabulary that does not divide, KV heads fewer than ranks, threads and caches") {
  ModelShape shape = load_weights(shipped("dculab-tiny")).shape;
  shape.kinds[0].gqa().heads = {12, 4, 16};
  shape.vocab_size = 1001;
  for (const bool tied : {false, true}) {
    shape.tie_word_embeddings = tied;
    const ModelWeights weights = with_format(shape, Dtype::f32, std::nullopt);
    for (const int ranks : {2, 4}) {
      INFO(ranks << " ranks");
      require_alike(run_steps(weights, divided({ranks, ExpertDivision::within_experts})),
                    run_steps(weights, {.num_threads = 1}));
    }
  }
  shape.kinds[0].gqa().heads = {12, 2, 16};
  const ModelWeights few = with_format(shape, Dtype::f32, std::nullopt);
  const std::vector<Logits> expected = run_steps(few, {.num_threads = 1});
  require_alike(run_steps(few, divided({4, ExpertDivision::within_experts})), expected);
  StepperOptions threads = divided(kTwo);
  threads.num_threads = 4;
  require_alike(run_steps(few, threads), expected);
  REQUIRE_THROWS_WITH(Stepper(few, divided({3, ExpertDivision::within_experts})),
                      Catch::Contains("2 KV heads do not divide over 3 devices"));
  shape.kinds[0].gqa().heads = {12, 3, 16};
  const ModelWeights three = with_format(shape, Dtype::f32, std::nullopt);
  require_alike(run_steps(three, divided({3, ExpertDivision::within_experts})), run_steps(three, {.num_threads = 1}));
}

TEST_CASE("a rank's parts put together are the whole") {
  const ModelWeights weights = load_weights(shipped("dculab-tiny-gqa2"));
  const ModelShape part = part_of(weights.shape, weights.shape.layer_format(), kTwo);
  std::array<ModelWeights, 2> parts{part_of_weights(weights, part, 0), part_of_weights(weights, part, 1)};
  const auto values = [](const kernels::WeightView& view, int columns) {
    std::vector<float> wide(static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(columns));
    widen(static_cast<const std::byte*>(view.data), view.dtype, wide);
    return wide;
  };
  const kernels::WeightView& whole_up = weights.layers[1][WeightSlot::up_proj].weights[kUp];
  std::vector<float> up = values(parts[0].layers[1][WeightSlot::up_proj].weights[kUp], 256);
  const std::vector<float> lower_half = values(parts[1].layers[1][WeightSlot::up_proj].weights[kUp], 256);
  up.insert(up.end(), lower_half.begin(), lower_half.end());
  REQUIRE(up == values(whole_up, 256));
  const std::vector<float> down = values(weights.layers[1][WeightSlot::down_proj].weights[0], 768);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::vector<float> columns = values(parts[rank].layers[1][WeightSlot::down_proj].weights[0], 384);
    for (std::size_t row = 0; row < 256; ++row)
      REQUIRE(std::equal(columns.begin() + static_cast<std::ptrdiff_t>(row * 384),
                         columns.begin() + static_cast<std::ptrdiff_t>((row + 1) * 384),
                         down.begin() + static_cast<std::ptrdiff_t>(row * 768 + rank * 384)));
  }
}

TEST_CASE("blocks are copied, swapped and filled on every rank") {
  const ModelWeights weights = load_weights(shipped("dculab-tiny"));
  const std::vector<TokenId> prompt = random_tokens(16, weights.shape.vocab_size);
  const KvCacheOptions kv{.num_blocks = 8, .block_size = 16, .dtype = Dtype::f32, .num_host_blocks = 4};
  EngineOptions options;
  options.kv_cache_dtype = Dtype::f32;
  options.activation_dtype = Dtype::f32;
  options.weights = weights.shape.layer_format();
  // The token after a prompt in block 0, once its K and V have gone to block 3 and come back in block 5.
  const auto last_logits = [&](const Division& division) {
    const auto executor = make_divided_executor({}, weights, kv, options, 2, division);
    executor->fill_kv_cache(1);
    const auto run = [&](int computed, std::vector<TokenId> tokens, std::vector<BlockId> blocks) {
      Batch batch;
      batch.sequences = {{.phase = computed == 0 ? Phase::prefill : Phase::decode,
                          .num_computed_tokens = computed,
                          .num_new_tokens = static_cast<int>(tokens.size())}};
      batch.token_ids = std::move(tokens);
      batch.block_tables = {std::move(blocks)};
      (void)executor->run(plan_step(executor->planned_model(), options, std::move(batch)));
    };
    run(0, prompt, {0});
    executor->copy_blocks(std::vector<BlockCopy>{{0, 3}});
    executor->swap_blocks(std::vector<BlockCopy>{{3, 1}}, {});
    executor->swap_blocks({}, std::vector<BlockCopy>{{1, 5}});
    executor->forget(0);
    run(16, {7}, {5, 6});
    const auto row = executor->logits(0);
    return std::vector<float>(row.begin(), row.end());
  };
  const std::vector<float> one = last_logits({});
  REQUIRE(largest_difference(last_logits(kTwo), one.data()) <= kMostApart);
}

TEST_CASE("exchanges are timed as ops, and the ops add up to the step") {
  const ModelWeights weights = load_weights(shipped("dculab-tiny"));
  Stepper stepper(weights, divided(kTwo));
  const StepPlan plan = stepper.plan({{0, Phase::prefill, random_tokens(64, weights.shape.vocab_size)}});
  (void)stepper.executor().run(plan);
  const StepResult result = stepper.executor().run(plan);
  Seconds sum;
  int exchanges = 0;
  for (std::size_t op = 0; op < plan.ops.size(); ++op) {
    sum += result.op_durations[op];
    const bool is_exchange = plan.ops[op].kind == OpKind::all_reduce || plan.ops[op].kind == OpKind::all_gather;
    if (is_exchange) ++exchanges;
    if (is_exchange) REQUIRE(result.op_durations[op] > Seconds());
  }
  REQUIRE(exchanges == 4);  // of the embedding, attention, the MLP and the logits
  REQUIRE(sum <= result.duration);
}

TEST_CASE("what cannot be divided or shared is refused, before any process is made") {
  const ModelWeights weights = load_weights(shipped("dculab-tiny"));
  REQUIRE_THROWS_WITH(Stepper(weights, divided({3, ExpertDivision::within_experts})),
                      Catch::Contains("8 query heads do not divide over 3 devices"));
  REQUIRE_THROWS_WITH(Stepper(weights, divided(kTwoByExpert)), Catch::Contains("has no experts to share"));
  REQUIRE_THROWS_WITH(Stepper(weights, divided({16, ExpertDivision::within_experts})),
                      Catch::Contains("at most 8 processes"));
  REQUIRE_THROWS_WITH(Stepper(weights, divided({1, ExpertDivision::by_expert})),
                      Catch::Contains("enable_expert_parallel"));
  REQUIRE_THROWS_WITH(require_shared_device({DeviceKind::host_gpu, 0}, kTwo), Catch::Contains("--device cpu"));
}

TEST_CASE("a process of a rank that dies ends the step, and no further one runs") {
  const ModelWeights weights = load_weights(shipped("dculab-tiny"));
  RankedExecutor executor(weights, {.num_blocks = 8, .dtype = Dtype::f32}, 2, kTwo);
  kill(executor.process_ids().front(), SIGKILL);
  EngineOptions options;
  options.kv_cache_dtype = options.activation_dtype = Dtype::f32;
  options.weights = weights.shape.layer_format();
  Batch batch;
  batch.sequences = {{.phase = Phase::prefill, .num_new_tokens = 4}};
  batch.token_ids = {1, 2, 3, 4};
  batch.block_tables = {{0}};
  const StepPlan plan = plan_step(executor.planned_model(), options, std::move(batch));
  for (int attempt = 0; attempt < 2; ++attempt)
    REQUIRE_THROWS_WITH(executor.run(plan), Catch::Contains("rank 1 of 2 was ended by signal 9"));
}

}  // namespace dculab::engine
