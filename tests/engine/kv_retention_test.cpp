// Retention policies in the engine: against a dense model in double precision, and against themselves when the work is
// cut in other ways.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/kv/sinks.hpp"
#include "lower/kv/kv_memory.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/dense_llama.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/text_scores.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/retention_policies.hpp"

namespace dculab::engine {
namespace {

// How the work is cut.
struct RetentionCut {
  int block_size = 4;
  int max_num_batched_tokens = 512;
  int num_blocks = 256;
  int num_threads = 2;
  int num_prompt_tokens = 1;
  Dtype kv_dtype = Dtype::f32;
};

EngineOptions retention_options(const KvRetention& retention, const RetentionCut& cut) {
  EngineOptions options;
  options.block_size = cut.block_size;
  options.kv_cache_dtype = cut.kv_dtype;
  options.kv_retention = retention;
  options.weights = {Dtype::f32, 0};
  options.activation_dtype = Dtype::f32;
  options.max_num_batched_tokens = cut.max_num_batched_tokens;
  REQUIRE(problems(options).empty());
  return options;
}

TextScores retention_scores(const ModelWeights& weights, const KvRetention& retention, const RetentionCut& cut,
                            const std::vector<std::vector<TokenId>>& texts) {
  CpuExecutor executor(weights, {.num_blocks = cut.num_blocks, .block_size = cut.block_size, .dtype = cut.kv_dtype},
                       cut.num_threads);
  EngineOptions options = retention_options(retention, cut);
  options.weights = {weights.shape.dtype, 0};
  return token_log_probabilities(executor, options, texts, cut.num_prompt_tokens);
}

std::vector<double> dense_scores(const ModelWeights& weights, const KvRetention& retention, int block_size,
                                 const std::vector<TokenId>& text) {
  DenseLlama model(weights, retention, block_size);
  std::vector<double> scores;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const std::vector<double> logits = model.step(text[i]);
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    scores.push_back(logits[static_cast<std::size_t>(text[i + 1])] - std::log(total));
  }
  return scores;
}

// Logits of this model are at most about 10 and are computed in F32 through two layers; angles of the engine are those
// of positions in the text, off by up to 2^-18 radians at position 250.
constexpr double kScoreTolerance = 1e-4;

const ModelWeights& gqa() {
  static const ModelWeights weights = load_weights(kGoldenFolder / "gqa");
  return weights;
}

}  // namespace

TEST_CASE("the dense model agrees with the engine when everything is kept") {
  const std::vector<TokenId> text = random_text(60);
  CHECK(largest_difference(retention_scores(gqa(), {}, {}, {text})[0], dense_scores(gqa(), {}, 4, text)) <=
        kScoreTolerance);
}

TEST_CASE("StreamingLLM: sinks and window, at positions within the cache, beyond the trained positions") {
  const std::vector<TokenId> text = random_text(250);
  REQUIRE(static_cast<int>(text.size()) > gqa().shape.max_position_embeddings);
  for (const auto& [sinks, window, block_size] :
       {std::tuple{4, 20, 4}, {1, 8, 1}, {6, 10, 4}, {4, 33, 16}, {20, 5, 8}, {3, 40, 32}}) {
    INFO(sinks << " sinks, window of " << window << ", blocks of " << block_size);
    const KvRetention retention = sinks_of(sinks, window);
    const TextScores scores = retention_scores(gqa(), retention, {.block_size = block_size}, {text});
    CHECK(largest_difference(scores[0], dense_scores(gqa(), retention, block_size, text)) <= kScoreTolerance);
  }
}

TEST_CASE("the sinks of a sequence are the memory that is counted") {
  const ModelShape& shape = gqa().shape;
  EngineOptions options;
  options.kv_retention = sinks_of(6, 20);
  SinkKeys sinks(shape);
  for (const int seen : {3, 6}) {  // all places are there from the first on
    sinks.begin({.ops = {},
                 .batch = {.sequences = {{.id = 7, .phase = Phase::prefill, .num_new_tokens = seen}},
                           .token_ids = {},
                           .block_tables = {{0, 1}}},
                 .kv_retention = options.kv_retention},
                16);
    CHECK(static_cast<double>(sinks.bytes()) ==
          lower::kv_policy_memory(lower::DeviceKind::cpu, shape, options).value());
  }
  sinks.forget(7);
  CHECK(sinks.bytes() == 0);
}

TEST_CASE("a window forgets what leaves it, and positions stay") {
  const std::vector<TokenId> text = random_text(128);
  for (const auto& [window, block_size] : {std::pair{20, 4}, {8, 1}, {33, 16}}) {
    INFO("window of " << window << ", blocks of " << block_size);
    const KvRetention retention = window_of(window);
    const TextScores scores = retention_scores(gqa(), retention, {.block_size = block_size}, {text});
    CHECK(largest_difference(scores[0], dense_scores(gqa(), retention, block_size, text)) <= kScoreTolerance);
  }
}

TEST_CASE("H2O: each layer and KV head keeps its heavy hitters and the newest tokens") {
  for (const std::string variant : {"gqa", "mha", "mqa"}) {
    const ModelWeights weights = load_weights(kGoldenFolder / variant);
    const std::vector<TokenId> text = random_text(120, 3);
    for (const auto& [hitters, window, block_size] : {std::tuple{8, 8, 4}, {1, 30, 16}, {20, 1, 1}, {5, 12, 8}}) {
      INFO(variant << ": " << hitters << " heavy hitters, window of " << window << ", blocks of " << block_size);
      const KvRetention retention = hitters_of(hitters, window);
      const TextScores scores = retention_scores(weights, retention, {.block_size = block_size}, {text});
      CHECK(largest_difference(scores[0], dense_scores(weights, retention, block_size, text)) <= kScoreTolerance);
    }
  }
}

TEST_CASE("each policy sees something else") {
  const std::vector<TokenId> text = random_text(120);
  const TextScores all = retention_scores(gqa(), {}, {}, {text});
  for (const KvRetention& retention : {window_of(16), sinks_of(4, 16), hitters_of(8, 8)}) {
    const TextScores some = retention_scores(gqa(), retention, {}, {text});
    CHECK(std::equal(some[0].begin(), some[0].begin() + 15, all[0].begin()));  // nothing has gone yet
    CHECK(largest_difference(some[0], all[0]) > 1e-3);
  }
}

TEST_CASE("a policy that keeps more than there is changes no bit") {
  const std::vector<TokenId> text = random_text(100);
  const TextScores all = retention_scores(gqa(), {}, {}, {text});
  for (const KvRetention& retention : {window_of(100), sinks_of(4, 96), hitters_of(50, 50)})
    CHECK(retention_scores(gqa(), retention, {}, {text}) == all);
}

TEST_CASE("threads, chunks, neighbours and preemption change no bit of what a policy gives") {
  const std::vector<std::vector<TokenId>> texts{random_text(110, 1), random_text(90, 2), random_text(125, 3)};
  for (const KvRetention& retention : {window_of(18), sinks_of(5, 18), hitters_of(9, 14)}) {
    INFO(name(retention.policy));
    const RetentionCut plain{.num_threads = 1, .num_prompt_tokens = 70};
    const TextScores expected = retention_scores(gqa(), retention, plain, texts);
    for (std::size_t i = 0; i < texts.size(); ++i)  // alone, and all of it a token a step
      CHECK(std::ranges::equal(std::span(retention_scores(gqa(), retention, {}, {texts[i]})[0]).subspan(69),
                               expected[i]));
    for (const int chunk : {7, 16, 33})
      CHECK(retention_scores(gqa(), retention, {.max_num_batched_tokens = chunk, .num_prompt_tokens = 70}, texts) ==
            expected);
    // Room for two sequences, not for three.
    CHECK(retention_scores(gqa(), retention, {.num_blocks = 14, .num_prompt_tokens = 10}, texts)[2].size() == 115);
    const TextScores roomy = retention_scores(gqa(), retention, {.num_prompt_tokens = 10}, texts);
    CHECK(retention_scores(gqa(), retention, {.num_blocks = 14, .num_prompt_tokens = 10}, texts) == roomy);
  }
}

TEST_CASE("H2O reads keys in FP8 and int8") {
  const std::vector<TokenId> text = random_text(110);
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8}) {
    INFO(name(dtype));
    const RetentionCut whole{.num_prompt_tokens = 60, .kv_dtype = dtype};
    CHECK(retention_scores(gqa(), hitters_of(55, 55), whole, {text}) == retention_scores(gqa(), {}, whole, {text}));
    const TextScores expected = retention_scores(gqa(), hitters_of(9, 14), whole, {text});
    const RetentionCut other{.block_size = 16, .max_num_batched_tokens = 7, .num_prompt_tokens = 60, .kv_dtype = dtype};
    CHECK(retention_scores(gqa(), hitters_of(9, 14), other, {text}) == expected);
    CHECK(largest_difference(expected[0],
                             retention_scores(gqa(), hitters_of(9, 14), {.num_prompt_tokens = 60}, {text})[0]) > 0);
  }
}

TEST_CASE("H2O does not depend on the block size, and windows only as they are evicted by blocks") {
  const std::vector<TokenId> text = random_text(110);
  const TextScores expected = retention_scores(gqa(), hitters_of(9, 14), {.block_size = 1}, {text});
  for (const int block_size : {2, 16, 64})
    CHECK(retention_scores(gqa(), hitters_of(9, 14), {.block_size = block_size}, {text}) == expected);
}

TEST_CASE("prefix caching changes no bit of any score") {
  const std::vector<TokenId> text = random_text(100);
  std::vector<TokenId> fork(text.begin(), text.begin() + 64);
  const std::vector<TokenId> other = random_text(30, 9);
  fork.insert(fork.end(), other.begin(), other.end());
  const std::vector<std::vector<TokenId>> texts{text, fork, text};
  EngineOptions options = retention_options({}, {});
  options.max_num_seqs = 1;  // one after the other
  const auto run = [&] {
    CpuExecutor executor(gqa(), {.num_blocks = 64, .block_size = 4, .dtype = Dtype::f32}, 2);
    return token_log_probabilities(executor, options, texts, 64);
  };
  const TextScores expected = run();
  options.enable_prefix_caching = true;
  CHECK(run() == expected);
  options.max_num_seqs = 8;
  options.max_num_batched_tokens = 20;
  CHECK(run() == expected);
}

TEST_CASE("tokens that are in shared blocks are computed and not written") {
  const Batch batch{
      .sequences = {{.id = 0, .phase = Phase::prefill, .num_computed_tokens = 7, .num_unwritten_tokens = 1},
                    {.id = 1, .phase = Phase::decode, .num_computed_tokens = 4}},
      .token_ids = {1, 2},
      .block_tables = {{3, 9}, {2, 1}}};
  const InputLimits limits{.vocab_size = 96, .max_position_embeddings = 64, .num_blocks = 12, .block_size = 4};
  StepInputs inputs;
  inputs.fill(batch, limits);
  CHECK(inputs.slot_mapping()[0] == -1);
  CHECK(inputs.slot_mapping()[1] == 1 * 4);
  Batch all_written = batch;
  all_written.sequences[0].num_unwritten_tokens = 0;
  inputs.fill(all_written, limits);
  CHECK(inputs.slot_mapping()[0] == 9 * 4 + 3);
}

TEST_CASE("a slot that one sequence writes in a step is written though another only reads it") {
  const Batch batch{
      .sequences = {{.id = 0, .phase = Phase::prefill, .num_new_tokens = 4},
                    {.id = 1, .phase = Phase::prefill, .num_computed_tokens = 3, .num_unwritten_tokens = 1}},
      .token_ids = {1, 2, 3, 4, 4},
      .block_tables = {{5}, {5}}};
  StepInputs inputs;
  inputs.fill(batch, {.vocab_size = 96, .max_position_embeddings = 64, .num_blocks = 12, .block_size = 4});
  CHECK(std::ranges::equal(inputs.slot_mapping(), std::vector<std::int64_t>{20, 21, 22, 23, -1}));
}

TEST_CASE("a step in the middle of a text that was not computed is refused, unless the cache is made up") {
  for (const KvRetention& retention : {sinks_of(4, 16), hitters_of(8, 12)}) {
    const EngineOptions options = retention_options(retention, {});
    Batch batch = uniform_batch(Phase::decode, 1, 104, retention, 4);
    batch.token_ids = {5};
    batch.block_tables = {{1, 2, 3, 4, 5, 6}};
    const StepPlan plan = plan_step(gqa().shape, options, batch);
    CpuExecutor executor(gqa(), {.num_blocks = 8, .block_size = 4, .dtype = Dtype::f32}, 1);
    CHECK_THROWS_WITH(executor.run(plan), ContainsSubstring("not been computed here"));
    executor.fill_kv_cache(1);
    executor.run(plan);
    CHECK(std::isfinite(executor.logits(0)[0]));
    executor.forget(0);
  }
}

}  // namespace dculab::engine
