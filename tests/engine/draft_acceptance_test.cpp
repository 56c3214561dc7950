// Texts of drafts that are judged are distributed as the model's own, and a rule that is 1 % wrong would show.
#include "engine/sampling/draft_acceptance.hpp"

#include <array>
#include <cmath>
#include <map>

#include "tests/engine/support/drafted_texts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

// What is drawn after token 0, a text for each seed: the first two tokens, drafted as often as it takes.
std::vector<double> count_pairs(const DraftShape& shape, SamplingParams params, int texts) {
  std::vector<double> counts(kVocab * kVocab);
  DraftJudge judge{SpeculativeConfig{}};
  for (int text = 0; text < texts; ++text) {
    params.seed = static_cast<std::uint64_t>(text);
    std::vector<TokenId> tokens{0};
    while (tokens.size() < 3) {
      const DraftTree draft = draft_after(tokens.back(), shape, params, tokens.size());
      const Verdict verdict = judge.judge(draft, params, tokens.size(), rows_of(draft, tokens.back()));
      tokens.insert(tokens.end(), verdict.tokens.begin(), verdict.tokens.end());
    }
    ++counts[static_cast<std::size_t>(kVocab * tokens[1] + tokens[2])];
  }
  return counts;
}

// The first token alone, by a judge who is told something `wrong` of the draft.
using Wrong = void (*)(DraftTree&);
std::vector<double> count_first(const DraftShape& shape, SamplingParams params, int texts, Wrong wrong) {
  std::vector<double> counts(kVocab);
  DraftJudge judge{SpeculativeConfig{}};
  for (int text = 0; text < texts; ++text) {
    params.seed = static_cast<std::uint64_t>(text);
    DraftTree draft = draft_after(0, shape, params, 1);
    wrong(draft);
    ++counts[static_cast<std::size_t>(judge.judge(draft, params, 1, rows_of(draft, 0)).tokens.front())];
  }
  return counts;
}

std::vector<double> expected_pairs(const SamplingParams& params, int texts) {
  std::vector<double> expected;
  const std::vector<double> first = probabilities_of(kTargetChain.rows[0], params);
  for (std::size_t token = 0; token < kVocab; ++token)
    for (const double second : probabilities_of(kTargetChain.rows[token], params))
      expected.push_back(texts * first[token] * second);
  return expected;
}

std::vector<double> sums_by_first(const std::vector<double>& pairs) {
  std::vector<double> sums(kVocab);
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) sums[pair / kVocab] += pairs[pair];
  return sums;
}

// How far chi-squared lies above its mean, in standard deviations. What cannot be drawn must not have been.
double excess(const std::vector<double>& counts, const std::vector<double>& expected) {
  double chi_squared = 0;
  int cells = 0;
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    if (expected[cell] == 0) {
      REQUIRE(counts[cell] == 0);
      continue;
    }
    ++cells;
    chi_squared += (counts[cell] - expected[cell]) * (counts[cell] - expected[cell]) / expected[cell];
  }
  const double freedom = cells - 1;
  return (chi_squared - freedom) / std::sqrt(2 * freedom);
}

constexpr double kMostExcess = 5;

}  // namespace

TEST_CASE("sampled chains and trees are distributed as the model's own texts", "[speculation][once]") {
  const int texts = kSanitized ? 20'000 : 125'000;  // of two tokens
  const std::array shapes{chain_shape(1), chain_shape(4), full_tree_shape(std::vector<int>{3, 2}),
                          full_tree_shape(std::vector<int>{2, 2, 1}), parse_draft_shape("[(0,), (2,), (3,), (2, 1)]")};
  const std::array<SamplingParams, 3> settings{SamplingParams{.temperature = 1.0},
                                               {.temperature = 0.7, .top_k = 5, .top_p = 0.9},
                                               {.temperature = 1.5, .top_k = 2}};
  for (std::size_t shape = 0; shape < shapes.size(); ++shape)
    for (std::size_t setting = 0; setting < settings.size(); ++setting) {
      INFO("shape " << to_string(shapes[shape]) << ", setting " << setting);
      const auto counts = count_pairs(shapes[shape], settings[setting], texts);
      const auto expected = expected_pairs(settings[setting], texts);
      CHECK(excess(counts, expected) < kMostExcess);
      CHECK(excess(sums_by_first(counts), sums_by_first(expected)) < kMostExcess);
    }
}

TEST_CASE("a rule that accepts 1 % too much, or too little, would be caught", "[speculation][once]") {
  if (kSanitized) return;  // it takes many texts
  constexpr int kTexts = 1'000'000;
  const SamplingParams params{.temperature = 1.0};
  const auto excess_with = [&](const DraftShape& shape, Wrong wrong) {
    return excess(count_first(shape, params, kTexts, wrong), sums_by_first(expected_pairs(params, kTexts)));
  };
  // The judge hears that half of the tokens were drawn with probabilities that are 1 % larger than they were.
  const Wrong says_more = [](DraftTree& draft) {
    for (std::size_t value = 0; value < draft.probabilities.size(); ++value)
      if (value % 2 == 0) draft.probabilities[value] *= 1.01F;
  };
  // One draft in a hundred is accepted whatever it is: it is said to be drawn with next to no probability.
  const Wrong waves_through = [](DraftTree& draft) {
    static std::uint64_t count = 0;
    if (uniform(99, ++count) < 0.01)
      for (std::size_t node = 0; node < draft.nodes.size(); ++node)
        draft.probabilities[node * kVocab + static_cast<std::size_t>(draft.nodes[node].token)] = 1e-9F;
  };
  for (const DraftShape& shape : {chain_shape(1), chain_shape(2), full_tree_shape(std::vector<int>{2, 1})}) {
    INFO(to_string(shape));
    CHECK(excess_with(shape, [](DraftTree&) {}) < kMostExcess);
    CHECK(excess_with(shape, says_more) > kMostExcess);
    CHECK(excess_with(shape, waves_through) > kMostExcess);
  }
}

TEST_CASE("what is drawn without replacement is so, and drafts agree with what is recorded", "[speculation]") {
  const SamplingParams params{.temperature = 1.0, .top_k = 4, .seed = 5};
  const std::vector<double> of_draft = probabilities_of(kDraftChain.rows[2], params);
  std::map<std::pair<TokenId, TokenId>, double> shares;
  Guesses guesses;
  constexpr int kDraws = 100'000;
  for (std::uint64_t position = 0; position < kDraws; ++position) {
    DraftTree tree;
    REQUIRE(guesses.add(tree, DraftNode::kRoot, std::vector<int>{0, 1}, kDraftChain.rows[2], params, position) == 2);
    REQUIRE(tree.nodes[0].token != tree.nodes[1].token);
    shares[{tree.nodes[0].token, tree.nodes[1].token}] += 1.0 / kDraws;
    REQUIRE(tree.probabilities.size() == 2 * kVocab);
    REQUIRE(std::abs(tree.probabilities[kVocab + 3] - of_draft[3]) < 1e-6);
  }
  for (const auto& [pair, share] : shares) {
    const double first = of_draft[static_cast<std::size_t>(pair.first)];
    const double expected = first * of_draft[static_cast<std::size_t>(pair.second)] / (1 - first);
    CHECK(std::abs(share - expected) < 5 * std::sqrt(expected / kDraws));
  }
  DraftTree few;  // no more than can be drawn
  CHECK(guesses.add(few, DraftNode::kRoot, std::vector<int>{0, 1, 2, 3, 4, 5}, kDraftChain.rows[2], params, 1) == 4);
}

}  // namespace dculab::engine
