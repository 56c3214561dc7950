// Which experts tokens choose, and how many of them a step needs.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

namespace dculab {

// The share of all choices that each expert gets.
struct ExpertLoad {
  double zipf_exponent = 0;  // shares fall as rank^-exponent; 0: all experts alike
  std::vector<double>
      histogram{};  // measured choices by expert, in any unit; in place of the exponent where it is given

  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

// Everything that makes the load unusable for `num_experts` experts; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const ExpertLoad& load, int num_experts);

// The probability with which a token goes to each expert: they add up to `per_token`, and none is above 1.
[[nodiscard]] std::vector<double> choice_probabilities(const ExpertLoad& load, int num_experts, int per_token);

// Experts that `tokens` tokens touch, on average: the sum of 1 - (1 - p)^tokens.
[[nodiscard]] double touched_experts(const ExpertLoad& load, int num_experts, int per_token, double tokens);

// The largest of `count` Poisson numbers of a mean, which half of all draws do not exceed.
[[nodiscard]] double largest_of(double count, double mean);

// Tiles of 1, 2, 4 to 256 rows that hold the rows of all groups, each those of one group.
inline constexpr std::size_t kTileSizes = 9;
using TileCounts = std::array<double, kTileSizes>;

// Expected tiles of experts that a token chooses with these probabilities: the sum of E[ceil(rows / size)].
[[nodiscard]] TileCounts tiles_of(std::span<const double> probabilities, double tokens);
// The same of all experts under a load.
[[nodiscard]] TileCounts expert_tiles(const ExpertLoad& load, int num_experts, int per_token, double tokens);

// Tokens of the expert that gets the most: the median of the largest count.
[[nodiscard]] double longest_expert(const ExpertLoad& load, int num_experts, int per_token, double tokens);

}  // namespace dculab
