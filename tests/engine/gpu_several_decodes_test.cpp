// Chains and trees of guesses in decode steps of the GPU executor, run on the host, beside steps of one token.
#include <algorithm>
#include <tuple>

#include "core/draft_tree.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "tests/engine/support/gpu_latents.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// 0 -> {1, 2}, 1 -> {3, 4}, 4 -> {5}: one less in `nodes`.
DraftTree small_tree() {
  return {.nodes = {{.token = 7},
                    {.token = 11, .rank = 1},
                    {.token = 3, .parent = 0},
                    {.token = 9, .parent = 0, .rank = 1},
                    {.token = 2, .parent = 3}}};
}
const std::vector<std::vector<int>> kPaths{{0}, {0, 1}, {0, 2}, {0, 1, 3}, {0, 1, 4}, {0, 1, 4, 5}};

std::vector<TokenId> tree_tokens(TokenId root) {
  std::vector<TokenId> tokens{root};
  for (const DraftNode& node : small_tree().nodes) tokens.push_back(node.token);
  return tokens;
}

Stepper gpu_stepper(const ModelWeights& weights, StepperOptions options, int wave_size) {
  options.num_tokens = 1024;
  options.limits = {.max_num_batched_tokens = 128, .max_num_seqs = 4, .decode_tokens = 8};
  return {host_gpu(wave_size), weights, options};
}

Logits decoded(Stepper& stepper, SequenceId sequence, TokenId token) {
  return stepper.step({{sequence, Phase::decode, {token}}})[0];
}

// A chain and a tree behind prompts, the tree's accepted path moved up, and a token more of both.
std::vector<Logits> several_at_once(Stepper& stepper, const std::vector<TokenId>& text) {
  const std::vector<TokenId> prompt(text.begin(), text.end() - 1);
  const int before = static_cast<int>(prompt.size());
  stepper.step({{0, Phase::prefill, prompt}, {1, Phase::prefill, text}});
  std::vector<Logits> rows = stepper.step({{0, Phase::decode, tree_tokens(text.back()), 6, 6, visibility(small_tree())},
                                           {1, Phase::decode, {5, 8, 13}, 3}});
  const std::vector<int>& accepted = kPaths.back();
  std::vector<SlotMove> moves;
  for (int depth = 1; depth < static_cast<int>(accepted.size()); ++depth)
    moves.push_back(
        {stepper.slot(0, before + accepted[static_cast<std::size_t>(depth)]), stepper.slot(0, before + depth)});
  stepper.executor().move_slots(moves);
  stepper.rewind(0, before + static_cast<int>(accepted.size()));
  rows.push_back(decoded(stepper, 0, 21));
  rows.push_back(decoded(stepper, 1, 21));
  return rows;
}

// The same, each path alone and a token a step.
std::vector<Logits> one_by_one(Stepper& stepper, const std::vector<TokenId>& text) {
  std::vector<Logits> rows;
  const std::vector<TokenId> tokens = tree_tokens(text.back());
  Logits last, after_path;
  for (std::size_t path = 0; path < kPaths.size(); ++path) {
    const auto sequence = static_cast<SequenceId>(10 + path);
    stepper.step({{sequence, Phase::prefill, {text.begin(), text.end() - 1}}});
    for (const int place : kPaths[path]) last = decoded(stepper, sequence, tokens[static_cast<std::size_t>(place)]);
    rows.push_back(last);
    after_path = decoded(stepper, sequence, 21);
  }
  stepper.step({{1, Phase::prefill, text}});
  for (const TokenId token : {5, 8, 13}) rows.push_back(decoded(stepper, 1, token));
  rows.push_back(after_path);
  rows.push_back(decoded(stepper, 1, 21));
  return rows;
}

constexpr double kFlippedValue = 0x1p-8 / 64;

void check(const ModelWeights& weights, const StepperOptions& options, int wave_size, double tolerance) {
  INFO(weights.shape.name << ", " << name(options.activation_dtype) << " activations, " << name(options.kv_dtype)
                          << " KV, blocks of " << options.block_size << ", partitions of " << options.partition_tokens);
  const std::vector<TokenId> text = tokens_from(3, 22);
  Stepper plain = gpu_stepper(weights, options, wave_size), several = gpu_stepper(weights, options, wave_size);
  CHECK(relative_difference(several_at_once(several, text), one_by_one(plain, text)) <= tolerance);
}

}  // namespace

TEST_CASE("GPU: chains and trees have the logits of their paths decoded a token a step", "[gpu]") {
  // F32 sums in another order may round a K or V of the bf16 cache the other way: by 2^-8 of one of the 64 values that
  // a logit sums.
  for (const auto& [num_kv_heads, block_size, partition] : {std::tuple{8, 16, 512}, {2, 1, 16}, {1, 64, 16}})
    check(random_weights(small_model(num_kv_heads), 1),
          {.block_size = block_size, .kv_dtype = Dtype::bf16, .partition_tokens = partition}, 64, kFlippedValue);
  // In F16 a product of another shape may round any tensor of a layer the other way: those of gpu_logits_test.cpp.
  check(random_weights(small_model(2, Dtype::f16), 1),
        {.kv_dtype = Dtype::f16, .activation_dtype = Dtype::f16, .partition_tokens = 16}, 32, (8 * 2 + 2) * 0x1p-11);
  ModelWeights windowed = random_weights(small_model(2), 4);
  windowed.shape.kinds[0].gqa().sliding_window = 9;
  check(windowed, {.kv_dtype = Dtype::bf16, .partition_tokens = 16}, 64, kFlippedValue);
}

TEST_CASE("GPU: chains and trees over latents have the logits of their paths decoded a token a step", "[gpu]") {
  const ModelWeights weights = random_weights(latent_shape(), 3);
  for (const int partition : {512, 16})
    check(weights, {.kv_dtype = Dtype::bf16, .partition_tokens = partition}, 64, kFlippedValue);
}

TEST_CASE("GPU: steps of more tokens a sequence than there is room for are refused", "[gpu]") {
  Stepper one(host_gpu(), random_weights(small_model(2), 1), {.kv_dtype = Dtype::f16});
  one.step({{0, Phase::prefill, {1, 2, 3}}});
  CHECK_THROWS_AS(one.step({{0, Phase::decode, {4, 5}}}), std::invalid_argument);
  Stepper several = gpu_stepper(random_weights(small_model(2), 1), {.kv_dtype = Dtype::f16}, 64);
  several.step({{0, Phase::prefill, {1, 2, 3}}});
  CHECK_NOTHROW(several.step({{0, Phase::decode, tokens_from(1, 8)}}));
  several.rewind(0, 3);
  CHECK_THROWS_AS(several.step({{0, Phase::decode, tokens_from(1, 9)}}), std::invalid_argument);
}

}  // namespace dculab::engine
