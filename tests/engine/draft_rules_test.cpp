// How drafts are judged where nothing is drawn, by Medusa's rule and with given rates.
#include <array>
#include <cmath>

#include "engine/sampling/draft_acceptance.hpp"
#include "tests/engine/support/drafted_texts.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

TEST_CASE("at temperature 0 a tree gives what the model alone gives", "[speculation]") {
  for (const auto method : {RejectionSampleMethod::strict, RejectionSampleMethod::typical}) {
    DraftJudge judge{SpeculativeConfig{.rejection_sample_method = method}};
    for (TokenId last = 0; last < kVocab; ++last) {
      const DraftTree draft = draft_after(last, full_tree_shape(std::vector<int>{3, 2, 1}), {}, 1);
      CHECK(draft.probabilities.empty());
      const Verdict verdict = judge.judge(draft, {}, 1, rows_of(draft, last));
      TokenId token = last;
      for (const TokenId next : verdict.tokens) {
        token = likeliest(kTargetChain.rows[static_cast<std::size_t>(token)]);
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
      alone.push_back(sampler.sample(kTargetChain.rows[static_cast<std::size_t>(alone.back())], params, alone.size()));
    while (drafted.size() < 40) {
      const DraftTree draft = draft_after(drafted.back(), full_tree_shape(std::vector<int>{2, 2}), {}, drafted.size());
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
  draft.nodes = {{.token = 0},
                 {.token = 1, .rank = 1},
                 {.token = 3, .rank = 2},
                 {.token = 3, .parent = 1},
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
  CHECK(path_with(0.4, 1) == std::vector<int>{0});      // exp(-H) is 0.32: token 1 falls short
  CHECK(path_with(1, 1) == std::vector<int>{0});
  CHECK(path_with(0.6, 1) == std::vector<int>{0});      // min(0.6, 0.32)
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
    const double draft = uniform(7, RandomStream::draft, position),
                 test = uniform(7, RandomStream::acceptance, position);
    mean += draft / kDraws;
    product += (draft - 0.5) * (test - 0.5) / kDraws;
    REQUIRE(uniform(7, RandomStream::draft, position, 1) != draft);
    REQUIRE(uniform(8, RandomStream::draft, position) != draft);
  }
  CHECK_THAT(mean, WithinAbs(0.5, 5 / std::sqrt(12.0 * kDraws)));
  CHECK_THAT(product, WithinAbs(0.0, 5.0 / (12 * std::sqrt(double{kDraws}))));
}

}  // namespace dculab::engine
