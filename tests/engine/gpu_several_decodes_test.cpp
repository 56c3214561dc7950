// Chains and trees of guesses in decode steps of the GPU executor, run on the host: each token beside the same token
// alone in a step, behind the same cache.
#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

#include "core/draft_tree.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "tests/engine/support/gpu_latents.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// 0 -> {1, 2}, 1 -> {3, 4}, 4 -> {5}: one less in `nodes`.
DraftTree tree_of_five() {
  return {.nodes = {{.token = 7},
                    {.token = 11, .rank = 1},
                    {.token = 3, .parent = 0},
                    {.token = 9, .parent = 0, .rank = 1},
                    {.token = 2, .parent = 3}}};
}
const std::vector<std::vector<int>> kPaths{{0}, {0, 1}, {0, 2}, {0, 1, 3}, {0, 1, 4}, {0, 1, 4, 5}};

std::vector<TokenId> tree_tokens(TokenId root) {
  std::vector<TokenId> tokens{root};
  for (const DraftNode& node : tree_of_five().nodes) tokens.push_back(node.token);
  return tokens;
}

Stepper gpu_stepper(const ModelWeights& weights, StepperOptions options, int wave_size) {
  options.num_tokens = 1024;
  options.limits = {.max_num_batched_tokens = 128, .max_num_seqs = 4, .decode_tokens = 8};
  return {host_gpu(wave_size), weights, options};
}

// What a step leaves of a token: the logits after it, and its K and V in all layers as the cache has them.
struct Decoded {
  Logits logits;
  std::vector<std::uint16_t> kv;
};

// Of a cache of 16 bits: rows of heads, in which the tokens of a block stand one after the other.
std::vector<std::uint16_t> cached(Stepper& stepper, SequenceId sequence, int token) {
  const int block_size = stepper.engine().block_size;
  const std::vector<BlockId> block{stepper.blocks(sequence)[static_cast<std::size_t>(token / block_size)]};
  std::vector<std::uint16_t> values(stepper.executor().bytes_per_block() / sizeof(std::uint16_t)), of_token;
  stepper.executor().read_blocks(block, std::as_writable_bytes(std::span(values)));
  const auto width = static_cast<std::size_t>(stepper.executor().shape().heads().head_dim);
  for (auto row = static_cast<std::size_t>(token % block_size); row * width < values.size(); row += block_size) {
    const auto of_head = std::span(values).subspan(row * width, width);
    of_token.insert(of_token.end(), of_head.begin(), of_head.end());
  }
  return of_token;
}

// Gives `to` the first `before` tokens of `from`, and of those behind them the ones at `places`.
void follow(Stepper& stepper, SequenceId from, int before, std::span<const int> places, SequenceId to) {
  const int length = before + static_cast<int>(std::ssize(places));
  (void)stepper.plan({{to, Phase::prefill, std::vector<TokenId>(static_cast<std::size_t>(length) + 1)}});  // its blocks
  std::vector<SlotMove> moves;
  for (int token = 0; token < length; ++token) {
    const int source = token < before ? token : before + places[static_cast<std::size_t>(token - before)];
    moves.push_back({stepper.slot(from, source), stepper.slot(to, token)});
  }
  stepper.executor().move_slots(moves);
  stepper.rewind(to, length);
}

Decoded decoded(Stepper& stepper, SequenceId sequence, int position, TokenId token) {
  stepper.rewind(sequence, position);
  Logits logits = stepper.step({{sequence, Phase::decode, {token}}})[0];
  return {std::move(logits), cached(stepper, sequence, position)};
}

// A token of a draft, beside the same token decoded alone behind the cache that the draft left of those before it.
struct Twice {
  Decoded together, alone;
};

// Tokens `tokens` of a draft behind the first `before` of a sequence, which step `rows` computed, each by its path.
std::vector<Twice> decoded_twice(Stepper& stepper, SequenceId sequence, int before, const std::vector<TokenId>& tokens,
                                 const std::vector<std::vector<int>>& paths, std::span<const Logits> rows) {
  std::vector<Twice> all;
  for (std::size_t place = 0; place < tokens.size(); ++place) {
    const auto copy = static_cast<SequenceId>(10 * (sequence + 1) + static_cast<SequenceId>(place));
    const int ancestors = static_cast<int>(paths[place].size()) - 1;
    follow(stepper, sequence, before, std::span(paths[place]).first(static_cast<std::size_t>(ancestors)), copy);
    Decoded together{rows[place], cached(stepper, sequence, before + static_cast<int>(place))};
    all.push_back({std::move(together), decoded(stepper, copy, before + ancestors, tokens[place])});
  }
  return all;
}

// F32 sums of a step of several tokens are added in another order than those of one. What a bf16 cache keeps of them is
// the same bits, but where a value lies within these sums' errors of the middle between two: it is rounded to the other
// neighbour then, a step of 2^-7 of itself at most. Returns how many values of the token were.
int rounded_otherwise(const Twice& twice) {
  const auto values_of = [](const Decoded& decoded) {
    std::vector<float> values(decoded.kv.size());
    widen(decoded.kv.data(), Dtype::bf16, values);
    return values;
  };
  const std::vector<float> together = values_of(twice.together), alone = values_of(twice.alone);
  const auto size = [](float value) { return std::abs(value); };
  const float largest = size(std::ranges::max(alone, {}, size));
  int count = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    if (together[i] == alone[i]) continue;
    ++count;
    CHECK(std::abs(together[i] - alone[i]) <= 0x1p-7F * std::abs(alone[i]) + 1e-6F * largest);
  }
  return count;
}

// Logits of tokens with the same K and V are equal but for F32 sums. Such an error is 2^-20 of a value or so, and
// neighbours of bf16 lie 2^-8 of it apart: one value of some 4,000 is rounded otherwise, and most tokens have none.
void check_but_for_roundings(const std::vector<Twice>& all) {
  std::ptrdiff_t same = 0;
  for (const Twice& twice : all) {
    const int count = rounded_otherwise(twice);
    CHECK(100 * count <= std::ssize(twice.alone.kv));
    if (count > 0) continue;
    ++same;
    CHECK(relative_difference({twice.together.logits}, {twice.alone.logits}) <= 1e-5);
  }
  CHECK(3 * same >= 2 * std::ssize(all));
}

// The path to the tree's last place is accepted: it moves up, and goes on like a copy of it that was put together.
void check_accepted_path(Stepper& stepper, int before) {
  const std::vector<int>& accepted = kPaths.back();
  const SequenceId copy = 90;
  follow(stepper, 0, before, accepted, copy);
  std::vector<SlotMove> moves;
  for (int depth = 1; depth < static_cast<int>(accepted.size()); ++depth)
    moves.push_back(
        {stepper.slot(0, before + accepted[static_cast<std::size_t>(depth)]), stepper.slot(0, before + depth)});
  stepper.executor().move_slots(moves);
  const int length = before + static_cast<int>(accepted.size());
  const Decoded moved = decoded(stepper, 0, length, 21), expected = decoded(stepper, copy, length, 21);
  CHECK(moved.logits == expected.logits);
  CHECK(moved.kv == expected.kv);
}

// A tree and a chain behind prompts, in one step.
std::vector<Twice> tree_and_chain(const ModelWeights& weights, const StepperOptions& options, int wave_size) {
  Stepper stepper = gpu_stepper(weights, options, wave_size);
  const std::vector<TokenId> text = tokens_from(3, 22), chain{5, 8, 13};
  const int before = static_cast<int>(text.size());
  stepper.step({{0, Phase::prefill, {text.begin(), text.end() - 1}}, {1, Phase::prefill, text}});
  const std::vector<TokenId> tree = tree_tokens(text.back());
  const std::vector<Logits> rows =
      stepper.step({{0, Phase::decode, tree, 6, 6, visibility(tree_of_five())}, {1, Phase::decode, chain, 3}});
  std::vector<Twice> all = decoded_twice(stepper, 0, before - 1, tree, kPaths, rows);
  const std::vector<Twice> of_chain =
      decoded_twice(stepper, 1, before, chain, {{0}, {0, 1}, {0, 1, 2}}, std::span(rows).subspan(tree.size()));
  all.insert(all.end(), of_chain.begin(), of_chain.end());
  check_accepted_path(stepper, before - 1);
  return all;
}

}  // namespace

TEST_CASE("GPU: chains and trees have the logits of their paths decoded a token a step", "[gpu]") {
  for (const auto& [num_kv_heads, block_size, partition] : {std::tuple{8, 16, 512}, {2, 1, 16}, {1, 64, 16}}) {
    INFO(num_kv_heads << " KV heads, blocks of " << block_size << ", partitions of " << partition);
    check_but_for_roundings(
        tree_and_chain(random_weights(small_model(num_kv_heads), 1),
                       {.block_size = block_size, .kv_dtype = Dtype::bf16, .partition_tokens = partition}, 64));
  }
  ModelWeights windowed = random_weights(small_model(2), 4);
  windowed.shape.kinds[0].gqa().sliding_window = 9;
  check_but_for_roundings(tree_and_chain(windowed, {.kv_dtype = Dtype::bf16, .partition_tokens = 16}, 64));
}

// In F16 a product of another shape may round any tensor of a layer the other way: those of gpu_logits_test.cpp.
TEST_CASE("GPU: chains and trees in F16 have the logits of their paths but for its roundings", "[gpu]") {
  for (const Twice& twice :
       tree_and_chain(random_weights(small_model(2, Dtype::f16), 1),
                      {.kv_dtype = Dtype::f16, .activation_dtype = Dtype::f16, .partition_tokens = 16}, 32))
    CHECK(relative_difference({twice.together.logits}, {twice.alone.logits}) <= (8 * 2 + 2) * 0x1p-11);
}

TEST_CASE("GPU: chains and trees over latents have the logits of their paths decoded a token a step", "[gpu]") {
  const ModelWeights weights = random_weights(latent_shape(), 3);
  for (const int partition : {512, 16})
    check_but_for_roundings(tree_and_chain(weights, {.kv_dtype = Dtype::bf16, .partition_tokens = partition}, 64));
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
