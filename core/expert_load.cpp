#include "core/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dculab {
namespace {

[[nodiscard]] std::vector<double> shares(const ExpertLoad& load, int num_experts) {
  std::vector<double> result = load.histogram;
  for (int rank = 1; load.histogram.empty() && rank <= num_experts; ++rank)
    result.push_back(std::pow(rank, -load.zipf_exponent));
  const double total = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& share : result) share /= total;
  return result;
}

// How many of `tokens` tokens choose an expert that each of them chooses with `probability`.
struct Rows {
  double tokens = 0, probability = 0;

  [[nodiscard]] double mean() const { return tokens * probability; }
  [[nodiscard]] double spread() const { return std::sqrt(mean() * (1 - probability)); }
};

// Adds the tiles of `experts` that get few rows, of each size: the sum of P(rows > j * size).
void add_tiles_of_few(const Rows& rows, double experts, TileCounts& tiles) {
  double chance = std::pow(1 - rows.probability, rows.tokens), above = 1 - chance;
  for (int count = 0; above > 1e-9 && count < rows.tokens; ++count) {
    for (std::size_t index = 0; index < kTileSizes && count % (1 << index) == 0; ++index)
      tiles[index] += experts * above;
    chance *= (rows.tokens - count) / (count + 1) * rows.probability / (1 - rows.probability);
    above -= chance;
  }
}

// Of many rows, as a normal number. Where it spreads over more than half a tile, the last one is half full on average.
void add_tiles_of_many(const Rows& rows, double experts, TileCounts& tiles) {
  constexpr double kFar = 5;  // spreads
  const double mean = rows.mean(), spread = std::max(rows.spread(), 1e-3);
  for (std::size_t index = 0; index < kTileSizes; ++index) {
    const double size = 1 << index;
    if (spread > size / 2) {
      tiles[index] += experts * (mean / size + (size - 1) / (2 * size));
      continue;
    }
    double count = std::max(0.0, std::ceil((mean - kFar * spread) / size)), expected = count;
    for (; count * size < mean + kFar * spread; ++count)
      expected += std::erfc((count * size + 0.5 - mean) / (spread * std::sqrt(2.0))) / 2;
    tiles[index] += experts * expected;
  }
}

void add_tiles(const Rows& rows, double experts, TileCounts& tiles) {
  constexpr double kMany = 40;
  if (rows.mean() < kMany && rows.probability < 1)
    add_tiles_of_few(rows, experts, tiles);
  else
    add_tiles_of_many(rows, experts, tiles);
}

}  // namespace

std::vector<std::string> problems(const ExpertLoad& load, int num_experts) {
  std::vector<std::string> found;
  if (!(load.zipf_exponent >= 0)) found.emplace_back("the Zipf exponent of experts must not be negative");
  if (load.histogram.empty()) return found;
  if (std::ssize(load.histogram) != num_experts)
    found.push_back("the histogram of experts counts " + std::to_string(load.histogram.size()) +
                    " of them, and the model has " + std::to_string(num_experts));
  if (std::ranges::any_of(load.histogram, [](double count) { return !(count >= 0); }) ||
      std::ranges::all_of(load.histogram, [](double count) { return count == 0; }))
    found.emplace_back("the histogram of experts must have counts above 0, and none below");
  return found;
}

std::vector<double> choice_probabilities(const ExpertLoad& load, int num_experts, int per_token) {
  std::vector<double> probabilities = shares(load, num_experts);
  for (double& each : probabilities) each *= per_token;
  // What is above 1 goes to the others in proportion, until nothing is.
  for (int pass = 0; pass < num_experts; ++pass) {
    double above = 0, below = 0;
    for (double& each : probabilities) {
      if (each > 1) above += each - 1, each = 1;
      if (each < 1) below += each;
    }
    if (above <= 1e-12 || below <= 0) break;
    for (double& each : probabilities)
      if (each < 1) each *= 1 + above / below;
  }
  return probabilities;
}

double touched_experts(const ExpertLoad& load, int num_experts, int per_token, double tokens) {
  if (load.histogram.empty() && load.zipf_exponent == 0)
    return num_experts * (1 - std::pow(1 - static_cast<double>(per_token) / num_experts, tokens));
  double touched = 0;
  for (const double each : choice_probabilities(load, num_experts, per_token))
    touched += 1 - std::pow(1 - each, tokens);
  return touched;
}

TileCounts tiles_of(std::span<const double> probabilities, double tokens) {
  TileCounts tiles{};
  for (const double each : probabilities) add_tiles({tokens, std::min(each, 1.0)}, 1, tiles);
  return tiles;
}

TileCounts expert_tiles(const ExpertLoad& load, int num_experts, int per_token, double tokens) {
  if (!load.histogram.empty() || load.zipf_exponent > 0)
    return tiles_of(choice_probabilities(load, num_experts, per_token), tokens);
  TileCounts tiles{};
  add_tiles({tokens, static_cast<double>(per_token) / num_experts}, num_experts, tiles);
  return tiles;
}

// The median of the largest solves count * P(X > x) = ln 2.
double largest_of(double count, double mean) {
  constexpr double kMedian = 0.6931;
  if (mean > 50) return mean + std::sqrt(2 * mean * std::log(count));
  double probability = std::exp(-mean), tail = 1 - probability;
  int x = 0;
  while (count * tail > kMedian) {
    probability *= mean / ++x;
    tail -= probability;
  }
  return x;
}

double longest_expert(const ExpertLoad& load, int num_experts, int per_token, double tokens) {
  const double mean = tokens * per_token / num_experts;
  double longest = largest_of(num_experts, mean);
  if (!load.histogram.empty() || load.zipf_exponent > 0)
    longest = std::max(longest, tokens * std::ranges::max(choice_probabilities(load, num_experts, per_token)));
  return std::min(std::max(longest, 1.0), tokens);
}

}  // namespace dculab
