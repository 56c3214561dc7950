#include "engine/speculation/guesses.hpp"

#include <algorithm>
#include <numeric>

#include "engine/sampling/sampler.hpp"

namespace dculab::engine {

int Guesses::add(DraftTree& tree, int parent, std::span<const int> ranks, std::span<const float> logits,
                 const SamplingParams& params, std::uint64_t position) {
  if (params.temperature == 0) {
    require_finite(logits);
    return add_likeliest(tree, parent, ranks, logits);
  }
  distribution_.assign(logits, params);
  distribution_.probabilities(left_);
  return draw(tree, parent, ranks, params, position);
}

int Guesses::add_likeliest(DraftTree& tree, int parent, std::span<const int> ranks, std::span<const float> logits) {
  if (ranks.size() == 1 && ranks.front() == 0) {
    tree.nodes.push_back({.token = likeliest(logits), .parent = parent});
    return 1;
  }
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto better = [logits](TokenId a, TokenId b) {
    const float of_a = logits[static_cast<std::size_t>(a)], of_b = logits[static_cast<std::size_t>(b)];
    return of_a > of_b || (of_a == of_b && a < b);
  };
  const std::size_t wanted = std::min(order_.size(), static_cast<std::size_t>(ranks.back()) + 1);
  std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(wanted), order_.end(), better);
  int added = 0;
  for (const int rank : ranks) {
    if (static_cast<std::size_t>(rank) >= wanted) break;
    tree.nodes.push_back({.token = order_[static_cast<std::size_t>(rank)], .parent = parent, .rank = rank});
    ++added;
  }
  return added;
}

int Guesses::draw(DraftTree& tree, int parent, std::span<const int> ranks, const SamplingParams& params,
                  std::uint64_t position) {
  // Drawn from what is recorded, roundings and all.
  row_.assign(left_.begin(), left_.end());
  left_.assign(row_.begin(), row_.end());
  int added = 0;
  for (const int rank : ranks) {
    const TokenId token = draw_from(left_, uniform(params.seed, RandomStream::draft, position, added));
    if (token < 0) break;
    tree.nodes.push_back({.token = token, .parent = parent, .rank = rank});
    tree.probabilities.insert(tree.probabilities.end(), row_.begin(), row_.end());
    left_[static_cast<std::size_t>(token)] = 0;
    ++added;
  }
  return added;
}

}  // namespace dculab::engine
