// Texts of drafts that are judged are distributed as the model's own, and a rule that is 1 % wrong would show.
#include "engine/sampling/draft_acceptance.hpp"

#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/speculation/guesses.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

constexpr int kVocab = 8;
using Row = std::vector<float>;

// Logits that depend on the last token alone: a text is then a Markov chain, whose probabilities are known.
struct Chain {
  std::array<Row, kVocab> rows;  // [last token][next token]
};

// `same`: of another chain's logits that are taken over, the rest is its own.
Chain chain_from(std::uint64_t seed, double spread, const Chain* other = nullptr, double same = 0) {
  Chain chain;
  for (int last = 0; last < kVocab; ++last)
    for (int next = 0; next < kVocab; ++next) {
      const auto index = static_cast<std::size_t>(last);
      const double own = spread * (2 * uniform(seed, static_cast<std::uint64_t>(kVocab * last + next)) - 1);
      const double base = other == nullptr ? 0 : same * other->rows[index][static_cast<std::size_t>(next)];
      chain.rows[index].push_back(static_cast<float>(base + (1 - same) * own));
    }
  return chain;
}

const Chain kTarget = chain_from(3, 2.0);
const Chain kDraft = chain_from(8, 2.0, &kTarget, 0.4);

std::vector<double> probabilities_of(const Row& logits, const SamplingParams& params) {
  TokenDistribution distribution;
  distribution.assign(logits, params);
  std::vector<double> probabilities;
  distribution.probabilities(probabilities);
  return probabilities;
}

// A draft of `shape` after `last`, as a draft model makes it.
DraftTree draft_after(TokenId last, const DraftShape& shape, const SamplingParams& params, std::uint64_t position) {
  DraftTree tree;
  Guesses guesses;
  std::vector<int> places(shape.nodes.size(), -2);  // of the shape's nodes, in the tree
  for (int parent = DraftNode::kRoot; parent < shape.num_tokens(); ++parent) {
    const bool is_root = parent == DraftNode::kRoot;
    const int place = is_root ? DraftNode::kRoot : places[static_cast<std::size_t>(parent)];
    if (place < DraftNode::kRoot) continue;
    std::vector<int> ranks, children;
    for (int node = 0; node < shape.num_tokens(); ++node) {
      if (shape.nodes[static_cast<std::size_t>(node)].parent != parent) continue;
      ranks.push_back(shape.nodes[static_cast<std::size_t>(node)].rank);
      children.push_back(node);
    }
    if (children.empty()) continue;
    const TokenId token = is_root ? last : tree.nodes[static_cast<std::size_t>(place)].token;
    const auto depth = static_cast<std::uint64_t>(is_root ? 0 : tree.depth_of(place));
    const int first = tree.num_tokens();
    const int added =
        guesses.add(tree, place, ranks, kDraft.rows[static_cast<std::size_t>(token)], params, position + depth);
    for (int index = 0; index < added; ++index)
      places[static_cast<std::size_t>(children[static_cast<std::size_t>(index)])] = first + index;
  }
  return tree;
}

LogitsOfRow rows_of(const DraftTree& draft, TokenId last) {
  return [&draft, last](int row) -> std::span<const float> {
    const TokenId token = row == 0 ? last : draft.nodes[static_cast<std::size_t>(row - 1)].token;
    return kTarget.rows[static_cast<std::size_t>(token)];
  };
}

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
  const std::vector<double> first = probabilities_of(kTarget.rows[0], params);
  for (std::size_t token = 0; token < kVocab; ++token)
    for (const double second : probabilities_of(kTarget.rows[token], params))
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

TEST_CASE("sampled chains and trees are distributed as the model's own texts", "[speculation]") {
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

TEST_CASE("a rule that accepts 1 % too much, or too little, would be caught", "[speculation]") {
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
  const std::vector<double> of_draft = probabilities_of(kDraft.rows[2], params);
  std::map<std::pair<TokenId, TokenId>, double> shares;
  Guesses guesses;
  constexpr int kDraws = 100'000;
  for (std::uint64_t position = 0; position < kDraws; ++position) {
    DraftTree tree;
    REQUIRE(guesses.add(tree, DraftNode::kRoot, std::vector<int>{0, 1}, kDraft.rows[2], params, position) == 2);
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
  CHECK(guesses.add(few, DraftNode::kRoot, std::vector<int>{0, 1, 2, 3, 4, 5}, kDraft.rows[2], params, 1) == 4);
}

TEST_CASE("at temperature 0 a tree gives what the model alone gives", "[speculation]") {
  for (const auto method : {RejectionSampleMethod::strict, RejectionSampleMethod::typical}) {
    DraftJudge judge{SpeculativeConfig{.rejection_sample_method = method}};
    for (TokenId last = 0; last < kVocab; ++last) {
      const DraftTree draft = draft_after(last, full_tree_shape(std::vector<int>{3, 2, 1}), {}, 1);
      CHECK(draft.probabilities.empty());
      const Verdict verdict = judge.judge(draft, {}, 1, rows_of(draft, last));
      TokenId token = last;
      for (const TokenId next : verdict.tokens) {
        token = likeliest(kTarget.rows[static_cast<std::size_t>(token)]);
        CHECK(next == token);
      }
      REQUIRE(verdict.path.size() + 1 == verdict.tokens.size());
      for (std::size_t index = 0; index < verdict.path.size(); ++index)
        CHECK(draft.nodes[static_cast<std::size_t>(verdict.path[index])].token == verdict.tokens[index]);
      // It stops where no child is right.
      const int end = verdict.path.empty() ? DraftNode::kRoot : verdict.path.back();
      for (const int child : draft.children(end))
        CHECK(draft.nodes[static_cast<std::size_t>(child)].token != verdict.tokens.back());
    }
  }
}

TEST_CASE("guesses that were not drawn leave the sampled text as it is, token for token", "[speculation]") {
  DraftJudge judge{SpeculativeConfig{}};
  Sampler sampler;
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const SamplingParams params{.temperature = 1.2, .top_p = 0.95, .seed = seed};
    std::vector<TokenId> alone{0}, drafted{0};
    while (alone.size() < 40)
      alone.push_back(sampler.sample(kTarget.rows[static_cast<std::size_t>(alone.back())], params, alone.size()));
    while (drafted.size() < 40) {
      const DraftTree draft =
          draft_after(drafted.back(), full_tree_shape(std::vector<int>{2, 2}), {}, drafted.size());
      const Verdict verdict = judge.judge(draft, params, drafted.size(), rows_of(draft, drafted.back()));
      drafted.insert(drafted.end(), verdict.tokens.begin(), verdict.tokens.end());
      accepted += static_cast<int>(verdict.path.size());
    }
    drafted.resize(40);
    REQUIRE(drafted == alone);
  }
  CHECK(accepted > 1000);
}

TEST_CASE("typical acceptance takes the longest path of probable tokens", "[speculation]") {
  // p after the last token: 0.5, 0.3, 0.15, 0.05; after token 1: 0.04 for each of three, 0.88 for token 3.
  const Row first{std::log(0.5F), std::log(0.3F), std::log(0.15F), std::log(0.05F)};
  const Row second{std::log(0.04F), std::log(0.04F), std::log(0.04F), std::log(0.88F)};
  DraftTree draft;
  draft.nodes = {{.token = 0}, {.token = 1, .rank = 1}, {.token = 3, .rank = 2}, {.token = 3, .parent = 1},
                 {.token = 2, .parent = 2}};
  const LogitsOfRow rows = [&](int row) -> std::span<const float> { return row == 2 ? second : first; };
  const SamplingParams params{.temperature = 1.0, .seed = 3};
  const auto path_with = [&](double threshold, double alpha) {
    DraftJudge judge{SpeculativeConfig{.rejection_sample_method = RejectionSampleMethod::typical,
                                       .posterior_threshold = threshold,
                                       .posterior_alpha = alpha}};
    const Verdict verdict = judge.judge(draft, params, 7, rows);
    CHECK(verdict.tokens.size() == verdict.path.size() + 1);
    return verdict.path;
  };
  CHECK(path_with(0.09, 1) == std::vector<int>{1, 3});  // the path by token 1 is longer than token 0 alone
  CHECK(path_with(0.4, 1) == std::vector<int>{0});   // exp(-H) is 0.32: token 1 falls short
  CHECK(path_with(1, 1) == std::vector<int>{0});
  CHECK(path_with(0.6, 1) == std::vector<int>{0});   // min(0.6, 0.32)
  CHECK(path_with(0.01, 1) == std::vector<int>{1, 3});  // likelier than token 3 and then 2
  CHECK(path_with(0.6, 0.3) == std::vector<int>{1, 3});
}

TEST_CASE("synthetic acceptance has the rates that were asked for, at every depth", "[speculation]") {
  SpeculativeConfig config{.rejection_sample_method = RejectionSampleMethod::synthetic};
  config.synthetic_acceptance_rates = {0.8, 0.5};
  DraftJudge judge{config};
  for (const DraftShape& shape : {chain_shape(3), full_tree_shape(std::vector<int>{2, 2, 2})}) {
    const DraftTree draft = draft_after(0, shape, {}, 0);
    std::array<int, 4> reached{};
    constexpr int kTexts = 50'000;
    for (std::uint64_t seed = 0; seed < kTexts; ++seed) {
      const Verdict verdict = judge.judge(draft, {.seed = seed}, 10, rows_of(draft, 0));
      for (std::size_t depth = 0; depth <= verdict.path.size(); ++depth) ++reached[depth];
      REQUIRE(verdict.tokens.size() == verdict.path.size() + 1);
      REQUIRE(verdict == judge.judge(draft, {.seed = seed}, 10, rows_of(draft, 0)));
    }
    const std::array rates{0.8, 0.5, 0.5};
    for (std::size_t depth = 0; depth < rates.size(); ++depth) {
      const double tested = reached[depth];
      CHECK(std::abs(reached[depth + 1] / tested - rates[depth]) < 5 * std::sqrt(0.25 / tested));
    }
  }
}

TEST_CASE("streams of random numbers are their own", "[speculation]") {
  CHECK(uniform(7, RandomStream::token, 12) == uniform(7, 12));
  double product = 0, mean = 0;
  constexpr int kDraws = 40'000;
  for (std::uint64_t position = 0; position < kDraws; ++position) {
    const double draft = uniform(7, RandomStream::draft, position), test = uniform(7, RandomStream::acceptance, position);
    mean += draft / kDraws;
    product += (draft - 0.5) * (test - 0.5) / kDraws;
    REQUIRE(uniform(7, RandomStream::draft, position, 1) != draft);
    REQUIRE(uniform(8, RandomStream::draft, position) != draft);
  }
  CHECK_THAT(mean, WithinAbs(0.5, 5 / std::sqrt(12.0 * kDraws)));
  CHECK_THAT(product, WithinAbs(0.0, 5.0 / (12 * std::sqrt(double{kDraws}))));
}

}  // namespace dculab::engine
