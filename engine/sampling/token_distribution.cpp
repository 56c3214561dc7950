#include "engine/sampling/token_distribution.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <limits>

#include "core/error.hpp"

namespace dculab::engine {

void require_finite(std::span<const float> logits) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  if (!std::ranges::all_of(logits, [](float logit) { return std::abs(logit) <= kLargest; }))
    throw InputError(kPredictionsNotFinite);
}

TokenId draw_from(std::span<const double> weights, double uniform) {
  double rest = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  TokenId last = -1;
  for (std::size_t token = 0; token < weights.size(); ++token) {
    if (weights[token] <= 0) continue;
    last = static_cast<TokenId>(token);
    rest -= weights[token];
    if (rest < 0) break;
  }
  return last;
}

TokenId likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

void TokenDistribution::assign(std::span<const float> logits, const SamplingParams& params) {
  require_finite(logits);
  vocab_size_ = logits.size();
  const double largest = *std::ranges::max_element(logits);
  rank_candidates(logits, params);
  const auto add_weights = [this] {
    total_ = 0;
    for (const Candidate& candidate : candidates_) total_ += candidate.weight;
  };
  for (Candidate& candidate : candidates_)
    candidate.weight = std::exp((static_cast<double>(candidate.logit) - largest) / params.temperature);
  add_weights();
  if (params.top_p >= 1) return;
  keep_nucleus(params.top_p * total_);
  add_weights();
}

TokenId TokenDistribution::draw(double uniform) const {
  double rest = uniform * total_;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.weight;
    if (rest < 0) return candidate.token;
  }
  return candidates_.front().token;  // rounding left a crumb
}

void TokenDistribution::probabilities(std::vector<double>& of_tokens) const {
  of_tokens.assign(vocab_size_, 0);
  for (const Candidate& candidate : candidates_)
    of_tokens[static_cast<std::size_t>(candidate.token)] = candidate.weight / total_;
}

void TokenDistribution::rank_candidates(std::span<const float> logits, const SamplingParams& params) {
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
void TokenDistribution::keep_nucleus(double wanted) {
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < wanted)) sum += candidates_[kept++].weight;
  candidates_.resize(kept);
}

}  // namespace dculab::engine
