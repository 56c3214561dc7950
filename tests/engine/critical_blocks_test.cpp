// Critical blocks in the engine: against a dense model where the choice has no choice, against the whole cache where
// the budget is all of it, and against themselves when the work is cut in other ways.
#include "engine/kv/critical_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "kernels/number_format.hpp"
#include "lower/kv/kv_memory.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/dense_llama.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/text_scores.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/retention_policies.hpp"

namespace dculab::engine {
namespace {

// How the work is cut.
struct BlockCut {
  int block_size = 4;
  int max_num_batched_tokens = 512;
  int max_num_seqs = 256;
  int num_blocks = 256;
  int num_host_blocks = 0;
  int num_threads = 2;
  int num_prompt_tokens = 1;
  Dtype kv_dtype = Dtype::f32;
  bool enable_prefix_caching = false;
};

KvCacheOptions cache_for(const BlockCut& cut) {
  return {.num_blocks = cut.num_blocks,
          .block_size = cut.block_size,
          .dtype = cut.kv_dtype,
          .num_host_blocks = cut.num_host_blocks,
          .policy = RetentionPolicy::critical_blocks};
}

EngineOptions block_options(const ModelWeights& weights, const KvRetention& retention, const BlockCut& cut) {
  EngineOptions options;
  options.block_size = cut.block_size;
  options.kv_cache_dtype = cut.kv_dtype;
  options.kv_retention = retention;
  options.weights = {weights.shape.dtype, 0};
  options.activation_dtype = Dtype::f32;
  options.max_num_batched_tokens = cut.max_num_batched_tokens;
  options.max_num_seqs = cut.max_num_seqs;
  options.enable_prefix_caching = cut.enable_prefix_caching;
  REQUIRE(problems(options).empty());
  return options;
}

const ModelWeights& model(const std::string& variant = "gqa") {
  static const ModelWeights gqa = load_weights(kGoldenFolder / "gqa");
  static const ModelWeights mha = load_weights(kGoldenFolder / "mha");
  return variant == "gqa" ? gqa : mha;
}

TextScores block_scores(const ModelWeights& weights, const KvRetention& retention, const BlockCut& cut,
                        const std::vector<std::vector<TokenId>>& texts) {
  CpuExecutor executor(weights, cache_for(cut), cut.num_threads);
  return token_log_probabilities(executor, block_options(weights, retention, cut), texts, cut.num_prompt_tokens);
}

// A decode's step by hand, or a prefill's: tokens [begin, end) of a text whose blocks these are.
void run_chunk(CpuExecutor& executor, const EngineOptions& options, const std::vector<TokenId>& text, int begin,
               int end, const std::vector<BlockId>& blocks, Phase phase) {
  const int held = (end + options.block_size - 1) / options.block_size;
  Batch batch{.sequences = {{.id = 3, .phase = phase, .num_computed_tokens = begin, .num_new_tokens = end - begin}},
              .token_ids = {text.begin() + begin, text.begin() + end},
              .block_tables = {{blocks.begin(), blocks.begin() + held}}};
  executor.run(plan_step(executor.shape(), options, std::move(batch)));
}

// What a block holds, in all layers: K, V, and bounds at the end of each layer.
std::vector<std::byte> contents(CpuExecutor& executor, BlockId block) {
  std::vector<std::byte> bytes(executor.bytes_per_block());
  executor.read_blocks({&block, 1}, bytes);
  return bytes;
}

// The bounds of each layer are those of the keys of its first `tokens` tokens.
void check_bounds(const std::vector<std::byte>& block, const ModelShape& shape, int block_size, int tokens) {
  const auto heads = static_cast<std::size_t>(shape.heads().num_key_value_heads);
  const auto width = static_cast<std::size_t>(shape.heads().head_dim), size = static_cast<std::size_t>(block_size);
  const std::size_t tensor = heads * size * width * sizeof(float), bounds = heads * 2 * width * 2;
  REQUIRE(block.size() == static_cast<std::size_t>(shape.num_layers()) * (2 * tensor + bounds));
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(shape.num_layers()); ++layer) {
    const std::byte* const first = block.data() + layer * (2 * tensor + bounds);
    std::vector<float> keys(heads * size * width);
    std::vector<kernels::BlockBounds> found(heads * 2 * width);
    std::memcpy(keys.data(), first, tensor);
    std::memcpy(found.data(), first + 2 * tensor, bounds);
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t d = 0; d < width; ++d) {
        float least = INFINITY, most = -INFINITY;
        for (std::size_t token = 0; token < static_cast<std::size_t>(tokens); ++token) {
          const float key = keys[(head * size + token) * width + d];
          least = std::min(least, key), most = std::max(most, key);
        }
        REQUIRE(found[head * 2 * width + d] == kernels::bf16_at_most(least));
        REQUIRE(found[(head * 2 + 1) * width + d] == kernels::bf16_at_least(most));
      }
  }
}

}  // namespace

TEST_CASE("a budget of all blocks gives the bits of the whole cache") {
  const std::vector<std::vector<TokenId>> texts{random_text(100), random_text(70, 2)};
  for (const std::string variant : {"gqa", "mha"})
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::int8})
      for (const int block_size : {1, 4, 16, 64}) {
        INFO(variant << ", " << name(dtype) << ", blocks of " << block_size);
        const BlockCut cut{.block_size = block_size, .num_blocks = 512, .num_prompt_tokens = 20, .kv_dtype = dtype};
        CHECK(block_scores(model(variant), critical(1), cut, texts) == block_scores(model(variant), {}, cut, texts));
      }
}

TEST_CASE("the smallest budget is the first block and the recent ones") {
  const std::vector<TokenId> text = random_text(110);
  for (const auto& [block_size, recent] : {std::pair{4, 1}, {8, 2}, {1, 20}, {16, 3}}) {
    INFO("blocks of " << block_size << ", " << recent << " recent ones");
    const KvRetention retention = critical(1e-6, recent);
    const TextScores scores = block_scores(model(), retention, {.block_size = block_size}, {text});
    DenseLlama dense(model(), retention, block_size);
    std::vector<double> expected;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      const std::vector<double> logits = dense.step(text[i]);
      double total = 0;
      for (const double logit : logits) total += std::exp(logit);
      expected.push_back(logits[static_cast<std::size_t>(text[i + 1])] - std::log(total));
    }
    CHECK(largest_difference(scores[0], expected) <= 1e-4);  // as of all policies: tests/engine/kv_retention_test.cpp
  }
}

TEST_CASE("a larger budget sees more, and comes nearer to the whole cache") {
  const std::vector<TokenId> text = random_text(120);
  const TextScores all = block_scores(model(), {}, {}, {text});
  double before = INFINITY;
  for (const double budget : {0.1, 0.4, 0.8}) {
    const double apart = largest_difference(block_scores(model(), critical(budget), {}, {text})[0], all[0]);
    CHECK(apart > 0);
    CHECK(apart < before);
    before = apart;
  }
}

TEST_CASE("threads, chunks, neighbours, shared prefixes and preemption change no bit of what critical blocks give") {
  const std::vector<std::vector<TokenId>> texts{random_text(110, 1), random_text(90, 2), random_text(125, 3)};
  const KvRetention retention = critical(0.3);
  const TextScores expected = block_scores(model(), retention, {.num_threads = 1, .num_prompt_tokens = 70}, texts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    CHECK(block_scores(model(), retention, {.num_prompt_tokens = 70}, {texts[i]})[0] == expected[i]);
  for (const int chunk : {7, 16, 33})
    CHECK(block_scores(model(), retention, {.max_num_batched_tokens = chunk, .num_prompt_tokens = 70}, texts) ==
          expected);
  // Room for two sequences, not for three: what one has generated is computed once more as it was at first.
  const TextScores roomy = block_scores(model(), retention, {.num_prompt_tokens = 10}, texts);
  for (const bool cached : {false, true}) {
    const BlockCut tight{.num_blocks = 56, .num_prompt_tokens = 10, .enable_prefix_caching = cached};
    CHECK(block_scores(model(), retention, tight, texts) == roomy);
  }
  std::vector<TokenId> fork(texts[0].begin(), texts[0].begin() + 64);
  fork.insert(fork.end(), texts[1].begin(), texts[1].begin() + 30);
  const std::vector<std::vector<TokenId>> forked{texts[0], fork, texts[0]};
  const TextScores alone = block_scores(model(), retention, {.max_num_seqs = 1, .num_prompt_tokens = 64}, forked);
  CHECK(block_scores(model(), retention, {.max_num_seqs = 1, .num_prompt_tokens = 64, .enable_prefix_caching = true},
                     forked) == alone);
  CHECK(block_scores(model(), retention,
                     {.max_num_batched_tokens = 20, .num_prompt_tokens = 64, .enable_prefix_caching = true},
                     forked) == alone);
}

TEST_CASE("bounds are those of the keys, however tokens came, and go where their blocks go") {
  const std::vector<TokenId> text = random_text(60);
  const BlockCut cut{.block_size = 8, .num_blocks = 24, .num_host_blocks = 4};
  const EngineOptions options = block_options(model(), critical(0.5), cut);
  CpuExecutor executor(model(), cache_for(cut), 2);
  CHECK(static_cast<double>(executor.bytes_per_block()) == kv_block_bytes(executor.shape(), options).value());
  const std::vector<BlockId> blocks{5, 2, 9, 11, 4, 7, 1, 3};
  run_chunk(executor, options, text, 0, 13, blocks, Phase::prefill);
  run_chunk(executor, options, text, 13, 27, blocks, Phase::prefill);
  for (int token = 27; token < 60; ++token) run_chunk(executor, options, text, token, token + 1, blocks, Phase::decode);
  for (int place = 0; place < 8; ++place) {
    const std::vector<std::byte> block = contents(executor, blocks[static_cast<std::size_t>(place)]);
    check_bounds(block, executor.shape(), 8, std::min(8, 60 - 8 * place));
  }
  const std::vector<std::byte> third = contents(executor, 9);
  executor.copy_blocks(std::vector<BlockCopy>{{9, 20}});
  CHECK(contents(executor, 20) == third);
  executor.swap_blocks(std::vector<BlockCopy>{{9, 2}}, {});
  executor.copy_blocks(std::vector<BlockCopy>{{5, 9}});
  CHECK(contents(executor, 9) != third);
  executor.swap_blocks({}, std::vector<BlockCopy>{{2, 9}});
  CHECK(contents(executor, 9) == third);
}

TEST_CASE("each layer and KV head chooses the first, the last and as many as the budget has") {
  const std::vector<TokenId> text = random_text(100);
  const BlockCut cut{.block_size = 4, .num_blocks = 40};
  const EngineOptions options = block_options(model(), critical(0.25), cut);
  CpuExecutor executor(model(), cache_for(cut), 2);
  std::vector<BlockId> blocks(25);
  std::iota(blocks.begin(), blocks.end(), 7);
  run_chunk(executor, options, text, 0, 97, blocks, Phase::prefill);
  run_chunk(executor, options, text, 97, 98, blocks, Phase::decode);
  const auto& slice = dynamic_cast<const CriticalBlocks&>(*executor.kv_slice(RetentionPolicy::critical_blocks));
  const kernels::ChosenBlocks& chosen = slice.chosen();
  REQUIRE(chosen.stride == 7);  // a quarter of 25, rounded up
  for (int head = 0; head < 2; ++head) {
    const std::int32_t* places = chosen.places + std::ptrdiff_t{head} * chosen.stride;
    CHECK(places[0] == 0);
    CHECK(places[6] == 24);
    CHECK(std::is_sorted(places, places + 7));
    CHECK(chosen.context_lens[head] == 6 * 4 + 2);
    for (int i = 0; i < 7; ++i) CHECK(chosen.block_tables[head * 7 + i] == (7 + places[i]) * 2 + head);
  }
}

TEST_CASE("the lists, bounds and queries of a sequence at its longest are the memory that is counted") {
  ModelWeights weights = model();
  weights.shape.max_position_embeddings = 98;
  const std::vector<TokenId> text = random_text(98);
  const BlockCut cut{.block_size = 4, .num_blocks = 40};
  const EngineOptions options = block_options(weights, critical(0.25), cut);
  CpuExecutor executor(weights, cache_for(cut), 2);
  std::vector<BlockId> blocks(25);
  std::iota(blocks.begin(), blocks.end(), 7);
  run_chunk(executor, options, text, 0, 97, blocks, Phase::prefill);
  run_chunk(executor, options, text, 97, 98, blocks, Phase::decode);
  const auto& slice = dynamic_cast<const CriticalBlocks&>(*executor.kv_slice(RetentionPolicy::critical_blocks));
  const double end_of_lists = sizeof(std::int32_t);  // of all sequences together
  CHECK(static_cast<double>(slice.bytes()) ==
        lower::kv_policy_memory(lower::DeviceKind::cpu, weights.shape, options).value() + end_of_lists);
}

TEST_CASE("critical blocks need a cache that keeps bounds") {
  const BlockCut cut;
  const EngineOptions options = block_options(model(), critical(0.25), cut);
  CpuExecutor executor(model(), {.num_blocks = 8, .block_size = 4, .dtype = Dtype::f32}, 1);
  CHECK_THROWS_WITH(run_chunk(executor, options, random_text(4), 0, 4, {0}, Phase::prefill),
                    ContainsSubstring("bounds"));
  CpuExecutor with_bounds(model(), cache_for(cut), 1);
  CHECK_THROWS_WITH(with_bounds.move_slots(std::vector<SlotMove>{{1, 2}}), ContainsSubstring("not of single tokens"));
}

}  // namespace dculab::engine
