#include "engine/sampling/sampler.hpp"

#include <cmath>
#include <limits>
#include <map>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// Softmax of these: 0.5, 0.25, 0.125, 0.125.
const std::vector<float> kLogits{std::log(0.125F), std::log(0.5F), std::log(0.125F), std::log(0.25F)};
constexpr int kDraws = 40'000;

std::map<TokenId, double> shares(const SamplingParams& params) {
  Sampler sampler;
  std::map<TokenId, double> counts;
  for (std::uint64_t position = 0; position < kDraws; ++position)
    counts[sampler.sample(kLogits, params, position)] += 1.0 / kDraws;
  return counts;
}

// Five standard deviations of a share of `probability`.
double spread(double probability) { return 5 * std::sqrt(probability * (1 - probability) / kDraws); }

}  // namespace

TEST_CASE("greedy takes the largest logit, the first among equals") {
  Sampler sampler;
  REQUIRE(sampler.sample(kLogits, {}, 0) == 1);
  REQUIRE(sampler.sample(std::vector<float>{1.0F, 3.0F, 3.0F, 2.0F}, {}, 7) == 1);
}

TEST_CASE("logits that are not finite are refused") {
  Sampler sampler;
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const float temperature : {0.0F, 1.0F})
      REQUIRE_THROWS_AS(sampler.sample(std::vector<float>{1.0F, wrong, 0.0F}, {.temperature = temperature}, 0),
                        InputError);
}

TEST_CASE("tokens come with the probabilities of the softmax") {
  auto drawn = shares({.temperature = 1.0, .seed = 11});
  for (const auto& [token, share] : {std::pair{0, 0.125}, {1, 0.5}, {2, 0.125}, {3, 0.25}})
    REQUIRE_THAT(drawn[token], WithinAbs(share, spread(share)));
}

TEST_CASE("temperature sharpens and flattens") {
  // p^(1/T), normalised: T = 0.5 squares the probabilities.
  auto sharp = shares({.temperature = 0.5, .seed = 1});
  const double total = 0.25 + 0.0625 + 2 * 0.015625;
  REQUIRE_THAT(sharp[1], WithinAbs(0.25 / total, spread(0.25 / total)));
  REQUIRE(shares({.temperature = 1e-6, .seed = 1}).size() == 1);
}

TEST_CASE("top_k keeps the k best, the first among equals") {
  auto drawn = shares({.temperature = 1.0, .top_k = 3, .seed = 2});
  REQUIRE(drawn.size() == 3);
  REQUIRE_FALSE(drawn.contains(2));
  REQUIRE_THAT(drawn[1], WithinAbs(0.5 / 0.875, spread(0.5 / 0.875)));
  REQUIRE(shares({.temperature = 1.0, .top_k = 1, .seed = 2}).size() == 1);
  REQUIRE(shares({.temperature = 1.0, .top_k = 100, .seed = 2}).size() == 4);
}

TEST_CASE("top_p keeps the fewest best tokens that reach it, after top_k") {
  REQUIRE(shares({.temperature = 1.0, .top_p = 0.4, .seed = 3}).size() == 1);
  auto drawn = shares({.temperature = 1.0, .top_p = 0.7, .seed = 3});
  REQUIRE(drawn.size() == 2);
  REQUIRE_THAT(drawn[1], WithinAbs(2.0 / 3, spread(2.0 / 3)));
  REQUIRE(shares({.temperature = 1.0, .top_p = 0.8, .seed = 3}).size() == 3);
  // Two thirds of the two tokens that top_k leaves is one of them.
  REQUIRE(shares({.temperature = 1.0, .top_k = 2, .top_p = 0.6, .seed = 3}).size() == 1);
}

TEST_CASE("what is drawn depends on seed and position alone") {
  Sampler fresh;
  Sampler used;
  for (std::uint64_t position = 0; position < 50; ++position)
    static_cast<void>(used.sample(kLogits, {.temperature = 2.0, .top_k = 2, .seed = 9}, position));
  int differs_by_seed = 0;
  for (std::uint64_t position = 0; position < 200; ++position) {
    const SamplingParams params{.temperature = 1.0, .top_p = 0.99, .seed = 4};
    const TokenId token = fresh.sample(kLogits, params, position);
    REQUIRE(used.sample(kLogits, params, position) == token);
    SamplingParams other = params;
    other.seed = 5;
    differs_by_seed += fresh.sample(kLogits, other, position) != token ? 1 : 0;
  }
  REQUIRE(differs_by_seed > 50);
}

TEST_CASE("random numbers are uniform and unlike their neighbours") {
  double mean = 0;
  double product = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double value = uniform(42, i);
    REQUIRE((value >= 0 && value < 1));
    mean += value / kDraws;
    product += (value - 0.5) * (uniform(42, i + 1) - 0.5) / kDraws;
  }
  REQUIRE_THAT(mean, WithinAbs(0.5, 5 / std::sqrt(12.0 * kDraws)));
  REQUIRE_THAT(product, WithinAbs(0.0, 5.0 / (12 * std::sqrt(double{kDraws}))));
}

TEST_CASE("unusable sampling parameters are named") {
  REQUIRE(problems(SamplingParams{}).empty());
  REQUIRE(problems(SamplingParams{.temperature = -1.0, .top_k = -2, .top_p = 0.0}).size() == 3);
  REQUIRE(problems(SamplingParams{.top_p = 1.5}).size() == 1);
}

}  // namespace dculab::engine
