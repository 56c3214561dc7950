// How many experts tokens touch, against counts that can be worked out and against draws.
#include "core/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

// Mean number of touched experts and of tiles, and the median of the longest, over draws without replacement by the
// load's shares.
struct Drawn {
  double touched, longest;
  TileCounts tiles{};
};

Drawn draw(const ExpertLoad& load, int num_experts, int per_token, int tokens) {
  std::vector<double> shares = load.histogram;
  for (int rank = 1; load.histogram.empty() && rank <= num_experts; ++rank)
    shares.push_back(std::pow(rank, -load.zipf_exponent));
  std::mt19937 random(7);
  constexpr int kDraws = 400;
  double touched = 0;
  std::vector<int> longest;
  TileCounts tiles{};
  for (int round = 0; round < kDraws; ++round) {
    std::vector<int> counts(shares.size());
    for (int token = 0; token < tokens; ++token) {
      std::vector<double> left = shares;
      for (int choice = 0; choice < per_token; ++choice) {
        const auto expert = std::discrete_distribution<std::size_t>(left.begin(), left.end())(random);
        ++counts[expert];
        left[expert] = 0;
      }
    }
    touched += static_cast<double>(std::ranges::count_if(counts, [](int count) { return count > 0; }));
    longest.push_back(std::ranges::max(counts));
    for (const int count : counts)
      for (std::size_t index = 0; index < kTileSizes; ++index)
        tiles[index] += std::ceil(static_cast<double>(count) / (1 << index)) / kDraws;
  }
  std::ranges::nth_element(longest, longest.begin() + kDraws / 2);
  return {touched / kDraws, static_cast<double>(longest[kDraws / 2]), tiles};
}

}  // namespace

TEST_CASE("experts touched by one token are its own, by many all of them") {
  CHECK(touched_experts({}, 128, 8, 1) == Approx(8));
  CHECK(touched_experts({}, 8, 2, 2) == Approx(8 * (1 - 0.75 * 0.75)));
  CHECK(touched_experts({}, 128, 8, 10000) == Approx(128));
  CHECK(touched_experts({.zipf_exponent = 1}, 128, 8, 1) == Approx(8));
  CHECK(touched_experts({.zipf_exponent = 1}, 128, 8, 32) < touched_experts({}, 128, 8, 32));
}

TEST_CASE("touched and longest are those of draws, for even and skewed loads") {
  for (const ExpertLoad& load : {ExpertLoad{}, ExpertLoad{.zipf_exponent = 0.5}})
    for (const auto& [experts, per_token, tokens] : {std::tuple{8, 2, 5}, {64, 6, 16}, {128, 8, 64}, {16, 2, 256}}) {
      INFO(load.zipf_exponent << ": " << tokens << " tokens, " << per_token << " of " << experts);
      const Drawn drawn = draw(load, experts, per_token, tokens);
      CHECK(touched_experts(load, experts, per_token, tokens) == Approx(drawn.touched).epsilon(0.04));
      CHECK(longest_expert(load, experts, per_token, tokens) == Approx(drawn.longest).epsilon(0.25));
    }
}

TEST_CASE("tiles are those that draws fill, of any size and load") {
  for (const ExpertLoad& load : {ExpertLoad{}, ExpertLoad{.zipf_exponent = 0.5}})
    for (const auto& [experts, per_token, tokens] :
         {std::tuple{8, 2, 5}, {64, 6, 16}, {128, 8, 64}, {16, 2, 256}, {8, 2, 1024}}) {
      INFO(load.zipf_exponent << ": " << tokens << " tokens, " << per_token << " of " << experts);
      const TileCounts tiles = expert_tiles(load, experts, per_token, tokens);
      const TileCounts drawn = draw(load, experts, per_token, tokens).tiles;
      for (std::size_t index = 0; index < kTileSizes; ++index) {
        INFO("tiles of " << (1 << index));
        CHECK(tiles[index] == Approx(drawn[index]).epsilon(0.04));
      }
    }
  const TileCounts always = expert_tiles({.histogram = {1, 0}}, 2, 1, 100);
  CHECK(always[0] == Approx(100));
  CHECK(always[4] == Approx(7));
  CHECK(always[8] == Approx(1));
}

TEST_CASE("choices add up to a token's experts, none more often than always") {
  const ExpertLoad hot{.histogram = {1000, 1, 1, 1}};
  const std::vector<double> probabilities = choice_probabilities(hot, 4, 2);
  CHECK(std::accumulate(probabilities.begin(), probabilities.end(), 0.0) == Approx(2));
  CHECK(std::ranges::max(probabilities) == Approx(1));
  CHECK(touched_experts(hot, 4, 2, 1) == Approx(2));
  CHECK(longest_expert(hot, 4, 2, 50) == Approx(50));
}

TEST_CASE("a load that is no load says why") {
  CHECK(problems(ExpertLoad{}, 8).empty());
  CHECK(problems(ExpertLoad{.histogram = {1, 2}}, 2).empty());
  CHECK_THAT(problems(ExpertLoad{.histogram = {1, 2}}, 3).front(),
             ContainsSubstring("counts 2 of them, and the model has 3"));
  CHECK(problems(ExpertLoad{.histogram = {0, 0}}, 2).size() == 1);
  CHECK(problems(ExpertLoad{.zipf_exponent = -1}, 2).size() == 1);
}
