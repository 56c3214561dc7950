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

// The largest of `count` Poisson numbers of a mean, which half of all draws do not exceed: count * P(X > x) = ln 2.
[[nodiscard]] double largest_of(double count, double mean) {
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

}  // namespace

std::vector<std::string> problems(const ExpertLoad& load, int num_experts) {
  std::vector<std::string> found;
  if (!(load.zipf_exponent >= 0)) found.emplace_back("the exponent of an expert load must not be negative");
  if (load.histogram.empty()) return found;
  if (std::ssize(load.histogram) != num_experts)
    found.push_back("an expert load of " + std::to_string(load.histogram.size()) + " experts is not one of " +
                    std::to_string(num_experts));
  if (std::ranges::any_of(load.histogram, [](double count) { return !(count >= 0); }) ||
      std::ranges::all_of(load.histogram, [](double count) { return count == 0; }))
    found.emplace_back("an expert load must have counts, none of them negative");
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

double longest_expert(const ExpertLoad& load, int num_experts, int per_token, double tokens) {
  const double mean = tokens * per_token / num_experts;
  double longest = largest_of(num_experts, mean);
  if (!load.histogram.empty() || load.zipf_exponent > 0)
    longest = std::max(longest, tokens * std::ranges::max(choice_probabilities(load, num_experts, per_token)));
  return std::min(std::max(longest, 1.0), tokens);
}

}  // namespace dculab
