#include "engine/sampling/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

std::uint64_t split_mix(std::uint64_t state) {
  state += 0x9E3779B97F4A7C15U;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31);
}

void require_finite(std::span<const float> logits) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  if (!std::ranges::all_of(logits, [](float logit) { return std::abs(logit) <= kLargest; }))
    throw InputError(kPredictionsNotFinite);
}

}  // namespace

std::vector<std::string> problems(const SamplingParams& params) {
  std::vector<std::string> found;
  if (!(params.temperature >= 0 && std::isfinite(params.temperature)))
    found.emplace_back("temperature must be 0 (greedy) or positive");
  if (params.top_k < 0) found.emplace_back("top_k must be 0 (all tokens) or positive");
  if (!(params.top_p > 0 && params.top_p <= 1)) found.emplace_back("top_p must lie in (0, 1]");
  return found;
}

double uniform(std::uint64_t seed, std::uint64_t counter) {
  return static_cast<double>(split_mix(split_mix(seed) ^ counter) >> 11) * 0x1p-53;
}

TokenId Sampler::sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position) {
  require_finite(logits);
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (params.temperature == 0) return static_cast<TokenId>(largest - logits.begin());
  rank_candidates(logits, params);
  double total = 0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((static_cast<double>(candidate.logit) - *largest) / params.temperature);
    total += candidate.weight;
  }
  if (params.top_p < 1) {
    keep_nucleus(params.top_p * total);
    total = 0;
    for (const Candidate& candidate : candidates_) total += candidate.weight;
  }
  double rest = uniform(params.seed, position) * total;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.weight;
    if (rest < 0) return candidate.token;
  }
  return candidates_.front().token;  // rounding left a crumb
}

// Best first where top_k or top_p needs an order; else as they come.
void Sampler::rank_candidates(std::span<const float> logits, const SamplingParams& params) {
  candidates_.resize(logits.size());
  for (std::size_t token = 0; token < logits.size(); ++token)
    candidates_[token] = {static_cast<TokenId>(token), logits[token], 0};
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  };
  const auto kept = params.top_k == 0 ? logits.size() : std::min(logits.size(), static_cast<std::size_t>(params.top_k));
  if (kept < logits.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(kept), candidates_.end(),
                     better);
    candidates_.resize(kept);
  }
  if (kept < logits.size() || params.top_p < 1) std::sort(candidates_.begin(), candidates_.end(), better);
}

// The fewest best candidates whose weights reach `wanted`.
void Sampler::keep_nucleus(double wanted) {
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < wanted)) sum += candidates_[kept++].weight;
  candidates_.resize(kept);
}

}  // namespace dculab::engine
