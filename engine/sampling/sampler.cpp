#include "engine/sampling/sampler.hpp"

#include <cmath>

#include "core/draft_tree.hpp"

namespace dculab::engine {
namespace {

std::uint64_t split_mix(std::uint64_t state) {
  state += 0x9E3779B97F4A7C15U;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31);
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

double uniform(std::uint64_t seed, RandomStream stream, std::uint64_t position, int rank) {
  if (stream == RandomStream::token) return uniform(seed, position);
  // Seeds of neighbouring samples differ by one: what is added to them is mixed first.
  const std::uint64_t seed_of_stream = split_mix(split_mix(seed) + static_cast<std::uint64_t>(stream));
  return uniform(seed_of_stream, position * (kMostDraftTokens + 1) + static_cast<std::uint64_t>(rank));
}

TokenId Sampler::sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position) {
  if (params.temperature == 0) {
    require_finite(logits);
    return likeliest(logits);
  }
  distribution_.assign(logits, params);
  return distribution_.draw(uniform(params.seed, position));
}

}  // namespace dculab::engine
