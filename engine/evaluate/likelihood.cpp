#include "engine/evaluate/likelihood.hpp"

#include <algorithm>
#include <cmath>

#include "engine/sampling/token_distribution.hpp"

namespace dculab::engine {
namespace {

// log sum exp(logits), shifted by the largest so that nothing overflows.
double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

}  // namespace

double log_probability(std::span<const float> logits, TokenId token) {
  return logits[static_cast<std::size_t>(token)] - log_sum_exp(logits);
}

void log_softmax(std::span<const float> logits, std::span<float> out) {
  const double normalizer = log_sum_exp(logits);
  std::ranges::transform(logits, out.begin(),
                         [normalizer](float logit) { return static_cast<float>(logit - normalizer); });
}

double kl_divergence(std::span<const float> reference, std::span<const float> logits) {
  const double normalizer = log_sum_exp(logits);
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double log_p = reference[i], log_q = logits[i] - normalizer;
    const double p = std::exp(log_p);
    sum += p * (log_p - log_q) - p + std::exp(log_q);
  }
  return sum;
}

void Agreement::add(std::span<const float> reference, std::span<const float> logits) {
  ++num_tokens;
  same_top1 += likeliest(reference) == likeliest(logits) ? 1 : 0;
  kl_sum += kl_divergence(reference, logits);
}

}  // namespace dculab::engine
