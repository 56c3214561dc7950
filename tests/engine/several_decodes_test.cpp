// Decode steps with several new tokens of a sequence: chains and trees of guesses, and what is kept of them.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/draft_tree.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

// A guess for each model and what is special about its attention.
struct DecodedModel {
  const char* name;
  std::filesystem::path root = kFamilyFolder;
};
const DecodedModel kDecodedModels[] = {
    {"gqa", kGoldenFolder}, {"bloom"},     {"qwen2_window"}, {"gemma2"}, {"mixtral"}, {"cla"},
    {"deepseek_v3"},        {"llama_yarn"}};

ModelWeights weights_of(const DecodedModel& variant) { return load_weights(variant.root / variant.name); }

constexpr int kPromptTokens = 18;

std::vector<TokenId> prompt() { return random_tokens(kPromptTokens, 60); }

// What may follow the prompt's last token:  0 -> {1, 2}, 1 -> {3, 4}, 2 -> {5}, 4 -> {6}, one less in `nodes`.
DraftTree tree_of_six() {
  return {.nodes = {{.token = 7},
                    {.token = 11, .rank = 1},
                    {.token = 3, .parent = 0},
                    {.token = 9, .parent = 0, .rank = 1},
                    {.token = 7, .parent = 1},
                    {.token = 2, .parent = 3}}};
}

std::vector<TokenId> tokens_of_tree(TokenId root, const DraftTree& tree) {
  std::vector<TokenId> tokens{root};
  for (const DraftNode& node : tree.nodes) tokens.push_back(node.token);
  return tokens;
}

// Places in the tree of a token and those before it, the root's first.
std::vector<int> path_to(const DraftTree& tree, int place) {
  std::vector<int> path;
  for (; place > 0; place = tree.nodes[static_cast<std::size_t>(place - 1)].parent + 1) path.push_back(place);
  path.push_back(0);
  std::ranges::reverse(path);
  return path;
}

// The logits after each token of the tree when its path alone follows the prompt, a token a step.
std::vector<Logits> decoded_alone(Stepper& stepper, const std::vector<TokenId>& text, const DraftTree& tree) {
  const std::vector<TokenId> tokens = tokens_of_tree(text.back(), tree);
  std::vector<Logits> rows;
  for (int place = 0; place < static_cast<int>(tokens.size()); ++place) {
    const SequenceId sequence = 100 + place;
    stepper.step({{sequence, Phase::prefill, first(text, text.size() - 1)}});
    Logits last;
    for (const int step : path_to(tree, place))
      last = stepper.step({{sequence, Phase::decode, {tokens[static_cast<std::size_t>(step)]}}})[0];
    rows.push_back(last);
  }
  return rows;
}

// The last token of a text and the tree behind it.
Feed fed_tree(SequenceId sequence, TokenId root, const DraftTree& tree) {
  const int count = tree.num_tokens() + 1;
  return {sequence, Phase::decode, tokens_of_tree(root, tree), count, count, visibility(tree)};
}

}  // namespace

TEST_CASE("a chain in one decode step has the logits of its tokens one by one, to the bit") {
  for (const DecodedModel& variant : kDecodedModels)
    for (const int block_size : {1, 16, 64}) {
      INFO(variant.name << " block_size " << block_size);
      Stepper stepper(weights_of(variant), {.block_size = block_size});
      const std::vector<TokenId> text = prompt(), chain{5, 8, 8, 1, 30};
      stepper.step({{0, Phase::prefill, text}, {1, Phase::prefill, first(text, 7)}});
      std::vector<Logits> expected;
      for (const TokenId token : chain) expected.push_back(stepper.step({{0, Phase::decode, {token}}})[0]);
      const Logits beside = stepper.step({{1, Phase::decode, {4}}})[0];
      stepper.rewind(0, kPromptTokens), stepper.rewind(1, 7);
      expected.push_back(beside);
      CHECK(stepper.step({{0, Phase::decode, chain, 5}, {1, Phase::decode, {4}}}) == expected);
    }
}

TEST_CASE("a token of a tree has the logits of its path decoded alone, to the bit") {
  const std::vector<TokenId> text = prompt();
  const DraftTree tree = tree_of_six();
  for (const DecodedModel& variant : kDecodedModels)
    for (const auto& [block_size, dtype] : {std::pair{1, Dtype::f32}, {16, Dtype::f16}, {64, Dtype::f32}}) {
      INFO(variant.name << " block_size " << block_size << " " << name(dtype));
      Stepper stepper(weights_of(variant), {.block_size = block_size, .kv_dtype = dtype});
      const std::vector<Logits> expected = decoded_alone(stepper, text, tree);
      stepper.step({{0, Phase::prefill, first(text, text.size() - 1)}});
      CHECK(stepper.step({fed_tree(0, text.back(), tree)}) == expected);
    }
}

TEST_CASE("latents: trees have the same bits in either form of attention as their paths in that form") {
  const std::vector<TokenId> text = prompt();
  for (const std::string& variant : kLatentVariants)
    for (const LatentForm form : {LatentForm::expand, LatentForm::absorb}) {
      INFO(variant << (form == LatentForm::absorb ? " absorbed" : " expanded"));
      Stepper stepper(load_weights(kFamilyFolder / variant), {.decode_latents = form});
      const std::vector<Logits> expected = decoded_alone(stepper, text, tree_of_six());
      stepper.step({{0, Phase::prefill, first(text, text.size() - 1)}, {1, Phase::prefill, first(text, 5)}});
      std::vector<Logits> rows =
          stepper.step({{1, Phase::decode, {text[5], text[6]}}, fed_tree(0, text.back(), tree_of_six())});
      rows.erase(rows.begin());
      CHECK(rows == expected);
    }
}

TEST_CASE("a tree may grow level by level, its earlier levels computed by earlier steps") {
  const std::vector<TokenId> text = prompt();
  const DraftTree tree = tree_of_six();
  const std::vector<std::uint64_t> masks = visibility(tree);
  const std::vector<TokenId> tokens = tokens_of_tree(text.back(), tree);
  for (const DecodedModel& variant : kDecodedModels) {
    INFO(variant.name);
    Stepper stepper(weights_of(variant));
    const std::vector<Logits> expected = decoded_alone(stepper, text, tree);
    stepper.step({{0, Phase::prefill, first(text, text.size() - 1)}});
    std::vector<Logits> rows;
    for (const auto& [begin, end] : {std::pair{0, 1}, {1, 3}, {3, 6}, {6, 7}}) {
      const std::vector<Logits> level = stepper.step({{0,
                                                       Phase::decode,
                                                       {tokens.begin() + begin, tokens.begin() + end},
                                                       end - begin,
                                                       end,
                                                       {masks.begin() + begin, masks.begin() + end}}});
      rows.insert(rows.end(), level.begin(), level.end());
    }
    CHECK(rows == expected);
  }
}

TEST_CASE("what is accepted of a tree moves up, and the text goes on as if decoded plainly") {
  const std::vector<TokenId> text = prompt(), more{13, 21, 5};
  const DraftTree tree = tree_of_six();
  const std::vector<int> accepted = path_to(tree, 6);  // places 0, 1, 4, 6
  for (const DecodedModel& variant : kDecodedModels)
    for (const auto& [block_size, dtype] : {std::pair{1, Dtype::f32}, {4, Dtype::int8}, {16, Dtype::fp8_e4m3}}) {
      INFO(variant.name << " block_size " << block_size << " " << name(dtype));
      Stepper stepper(weights_of(variant), {.block_size = block_size, .kv_dtype = dtype});
      const auto feed = [&](SequenceId sequence, TokenId token) {
        return stepper.step({{sequence, Phase::decode, {token}}})[0];
      };
      std::vector<Logits> expected, actual;
      stepper.step({{1, Phase::prefill, first(text, text.size() - 1)}});
      for (const TokenId token : {text.back(), 7, 9, 2}) feed(1, token);
      for (const TokenId token : more) expected.push_back(feed(1, token));

      const int before = kPromptTokens - 1;
      stepper.step({{0, Phase::prefill, first(text, text.size() - 1)}});
      stepper.step({fed_tree(0, text.back(), tree)});
      std::vector<SlotMove> moves;
      for (int depth = 1; depth < static_cast<int>(accepted.size()); ++depth)
        moves.push_back(
            {stepper.slot(0, before + accepted[static_cast<std::size_t>(depth)]), stepper.slot(0, before + depth)});
      stepper.executor().move_slots(moves);
      stepper.rewind(0, before + static_cast<int>(accepted.size()));
      for (const TokenId token : more) actual.push_back(feed(0, token));
      CHECK(actual == expected);
    }
}

TEST_CASE("steps whose trees contradict themselves are refused, and prefills that have one") {
  Stepper stepper(load_weights(kGoldenFolder / "gqa"));
  stepper.step({{0, Phase::prefill, {1, 2, 3, 4}}});
  const auto is_refused = [&](Feed feed) {
    stepper.rewind(0, 4);
    feed.phase = Phase::decode, feed.num_logits = 1;
    try {
      stepper.step({feed});
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  const std::vector<TokenId> three{5, 6, 7};
  CHECK_FALSE(is_refused({.tokens = three, .num_tree_tokens = 3, .tree_masks = {0b1, 0b11, 0b101}}));
  CHECK_FALSE(is_refused({.tokens = three, .num_tree_tokens = 5, .tree_masks = {0b101, 0b1010, 0b10101}}));
  CHECK(is_refused({.tokens = three, .num_tree_tokens = 3, .tree_masks = {0b1, 0b11}}));          // a mask is missing
  CHECK(is_refused({.tokens = three, .num_tree_tokens = 0, .tree_masks = {0b1, 0b11, 0b101}}));   // no tree
  CHECK(is_refused({.tokens = three, .num_tree_tokens = 3, .tree_masks = {0b1, 0b01, 0b101}}));   // not itself
  CHECK(is_refused({.tokens = three, .num_tree_tokens = 3, .tree_masks = {0b1, 0b111, 0b101}}));  // what is behind it
  CHECK(is_refused({.tokens = three, .num_tree_tokens = 2, .tree_masks = {0b1, 0b11, 0b101}}));   // smaller than new
  CHECK(is_refused({.tokens = three, .num_tree_tokens = 8, .tree_masks = {1U << 5, 1U << 6, 1U << 7}}));  // of 7
  const Feed tree_of_prompt{0, Phase::prefill, {4, 5}, 1, 2, {0b1, 0b11}};
  CHECK_THROWS_AS(stepper.step({tree_of_prompt}), std::invalid_argument);
}

TEST_CASE("several decodes at once are refused where a KIVI cache quantizes tokens together") {
  Stepper stepper(load_weights(std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models/dculab-tiny"),
                  {.block_size = 32, .kv_dtype = Dtype::kivi4});
  stepper.step({{0, Phase::prefill, {1, 2, 3}}});
  CHECK_THROWS_AS(stepper.step({{0, Phase::decode, {4, 5}}}), std::invalid_argument);
  CHECK_THROWS_AS(stepper.executor().move_slots(std::vector<SlotMove>{{3, 2}}), std::invalid_argument);
}

TEST_CASE("a tree's deepest token, not its last place, must be a position of the model") {
  ModelShape shape = load_weights(kGoldenFolder / "gqa").shape;
  shape.max_position_embeddings = kPromptTokens + 3;  // positions of the tree: 17 to 20
  Stepper stepper(random_weights(shape, 3));
  const std::vector<TokenId> text = prompt();
  const std::vector<Logits> expected = decoded_alone(stepper, text, tree_of_six());
  stepper.step({{0, Phase::prefill, first(text, text.size() - 1)}});
  CHECK(stepper.step({fed_tree(0, text.back(), tree_of_six())}) == expected);
  stepper.step({{1, Phase::prefill, text}});
  CHECK_THROWS_AS(stepper.step({fed_tree(1, 5, tree_of_six())}), std::invalid_argument);
}

}  // namespace dculab::engine
