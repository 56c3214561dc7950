// Texts of a small vocabulary whose probabilities are known, and drafts of them from another distribution.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling/draft_acceptance.hpp"
#include "engine/speculation/guesses.hpp"

namespace dculab::engine {

inline constexpr int kVocab = 8;
using Row = std::vector<float>;

// Logits that depend on the last token alone: a text is then a Markov chain, whose probabilities are known.
struct Chain {
  std::array<Row, kVocab> rows;  // [last token][next token]
};

// `same`: of another chain's logits that are taken over, the rest is its own.
inline Chain chain_from(std::uint64_t seed, double spread, const Chain* other = nullptr, double same = 0) {
  Chain chain;
  for (int last = 0; last < kVocab; ++last)
    for (int next = 0; next < kVocab; ++next) {
      const auto index = static_cast<std::size_t>(last);
      const double own = spread * (2 * uniform(seed, static_cast<std::uint64_t>(kVocab * last + next)) - 1);
      const double base = other == nullptr ? 0 : same * other->rows[index][static_cast<std::size_t>(next)];
      chain.rows[index].push_back(static_cast<float>(base + (1 - same) * own));
    }
  return chain;
}

inline const Chain kTargetChain = chain_from(3, 2.0);
inline const Chain kDraftChain = chain_from(8, 2.0, &kTargetChain, 0.4);

inline std::vector<double> probabilities_of(const Row& logits, const SamplingParams& params) {
  TokenDistribution distribution;
  distribution.assign(logits, params);
  std::vector<double> probabilities;
  distribution.probabilities(probabilities);
  return probabilities;
}

// A draft of `shape` after `last`, as a draft model makes it.
inline DraftTree draft_after(TokenId last, const DraftShape& shape, const SamplingParams& params,
                             std::uint64_t position) {
  DraftTree tree;
  Guesses guesses;
  std::vector<int> places(shape.nodes.size(), -2);  // of the shape's nodes, in the tree
  for (int parent = DraftNode::kRoot; parent < shape.num_tokens(); ++parent) {
    const bool is_root = parent == DraftNode::kRoot;
    const int place = is_root ? DraftNode::kRoot : places[static_cast<std::size_t>(parent)];
    if (place < DraftNode::kRoot) continue;
    std::vector<int> ranks, children;
    for (int node = 0; node < shape.num_tokens(); ++node) {
      if (shape.nodes[static_cast<std::size_t>(node)].parent != parent) continue;
      ranks.push_back(shape.nodes[static_cast<std::size_t>(node)].rank);
      children.push_back(node);
    }
    if (children.empty()) continue;
    const TokenId token = is_root ? last : tree.nodes[static_cast<std::size_t>(place)].token;
    const auto depth = static_cast<std::uint64_t>(is_root ? 0 : tree.depths()[static_cast<std::size_t>(place)]);
    const int first = tree.num_tokens();
    const int added =
        guesses.add(tree, place, ranks, kDraftChain.rows[static_cast<std::size_t>(token)], params, position + depth);
    for (int index = 0; index < added; ++index)
      places[static_cast<std::size_t>(children[static_cast<std::size_t>(index)])] = first + index;
  }
  return tree;
}

inline LogitsOfRow rows_of(const DraftTree& draft, TokenId last) {
  return [&draft, last](int row) -> std::span<const float> {
    const TokenId token = row == 0 ? last : draft.nodes[static_cast<std::size_t>(row - 1)].token;
    return kTargetChain.rows[static_cast<std::size_t>(token)];
  };
}

}  // namespace dculab::engine
