#include "core/expert_histogram.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace dculab {

void ExpertHistogram::add(std::size_t layer, std::span<const std::int64_t> tokens) {
  std::vector<std::int64_t>& counts = choices[layer];
  if (counts.size() < tokens.size()) counts.resize(tokens.size());
  for (std::size_t expert = 0; expert < tokens.size(); ++expert) counts[expert] += tokens[expert];
  touched_experts += std::ranges::count_if(tokens, [](std::int64_t count) { return count > 0; });
  ++layer_steps;
}

void ExpertHistogram::add(const ExpertHistogram& other) {
  if (choices.size() < other.choices.size()) choices.resize(other.choices.size());
  for (std::size_t layer = 0; layer < other.choices.size(); ++layer) {
    if (choices[layer].size() < other.choices[layer].size()) choices[layer].resize(other.choices[layer].size());
    for (std::size_t expert = 0; expert < other.choices[layer].size(); ++expert)
      choices[layer][expert] += other.choices[layer][expert];
  }
  layer_steps += other.layer_steps;
  touched_experts += other.touched_experts;
}

double ExpertHistogram::distinct_experts() const {
  return static_cast<double>(touched_experts) / static_cast<double>(layer_steps);
}

double ExpertHistogram::hottest_share() const {
  double shares = 0, layers = 0;
  for (const std::vector<std::int64_t>& counts : choices) {
    const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    if (total == 0) continue;
    shares += static_cast<double>(std::ranges::max(counts)) / total;
    ++layers;
  }
  return shares / layers;
}

ExpertLoad ExpertHistogram::load() const {
  ExpertLoad result;
  for (std::vector<std::int64_t> counts : choices) {
    std::ranges::sort(counts, std::greater());
    if (result.histogram.size() < counts.size()) result.histogram.resize(counts.size());
    for (std::size_t rank = 0; rank < counts.size(); ++rank)
      result.histogram[rank] += static_cast<double>(counts[rank]);
  }
  return result;
}

ExpertLoad load_touching(double distinct, int num_experts, int per_token, double tokens) {
  constexpr double kSteepest = 16;  // one expert gets nearly all
  constexpr int kHalvings = 50;
  const auto touched = [&](double exponent) {
    return touched_experts({.zipf_exponent = exponent}, num_experts, per_token, tokens);
  };
  if (distinct >= touched(0) || touched(kSteepest) >= touched(0)) return {};
  double flat = 0, steep = kSteepest;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (flat + steep) / 2;
    (touched(middle) > distinct ? flat : steep) = middle;
  }
  return {.zipf_exponent = flat};
}

}  // namespace dculab
