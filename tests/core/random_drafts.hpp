// Texts whose next token is a hash of all before, and drafts of them that are often right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/drafter.hpp"
#include "core/request.hpp"

namespace dculab {

using Word = std::uint64_t;

// FNV-1a over a text.
inline Word word_of(std::span<const TokenId> text) {
  Word hash = 14695981039346656037U;
  for (const TokenId token : text) hash = (hash ^ static_cast<std::uint32_t>(token)) * 1099511628211U;
  return hash;
}

// Depends on everything so far, and on the seed: any token lost or repeated changes all that follow.
inline TokenId fake_token(std::span<const TokenId> text, std::uint64_t seed) {
  const Word hash = word_of(text) ^ (seed * 0x9E3779B97F4A7C15U);
  return static_cast<TokenId>((hash ^ (hash >> 29)) % 50);
}
inline TokenId fake_token(const Sequence& sequence) {
  return fake_token(sequence.tokens, sequence.request.sampling.seed);
}

// The sequence's text and a node of its draft.
inline std::vector<TokenId> text_to(const Sequence& sequence, const DraftTree& draft, int node) {
  std::vector<TokenId> path;
  for (; node != DraftNode::kRoot; node = draft.nodes[static_cast<std::size_t>(node)].parent)
    path.push_back(draft.nodes[static_cast<std::size_t>(node)].token);
  std::vector<TokenId> text = sequence.tokens;
  text.insert(text.end(), path.rbegin(), path.rend());
  return text;
}

// Up to `most` nodes, each right if dice say so.
inline DraftTree random_draft(const Sequence& sequence, bool is_chain, int most, std::mt19937& random) {
  DraftTree draft;
  const int count = static_cast<int>(random() % static_cast<unsigned>(most + 1));
  while (draft.num_tokens() < count) {
    const int last = draft.num_tokens() - 1;
    const int parent = is_chain ? last : static_cast<int>(random() % static_cast<unsigned>(last + 2)) - 1;
    const std::vector<int> siblings = draft.children(parent);
    const bool right = random() % 10 < 7;
    const auto token = right ? fake_token(text_to(sequence, draft, parent), sequence.request.sampling.seed)
                             : static_cast<TokenId>(random() % 50);
    const auto is_there = [&](int node) { return draft.nodes[static_cast<std::size_t>(node)].token == token; };
    if (std::ranges::any_of(siblings, is_there)) continue;
    draft.nodes.push_back({.token = token, .parent = parent, .rank = static_cast<int>(siblings.size())});
  }
  return draft;
}

inline Verdict true_verdict(const Sequence& sequence, const DraftTree& draft) {
  Verdict verdict;
  int node = DraftNode::kRoot;
  while (true) {
    verdict.tokens.push_back(fake_token(text_to(sequence, draft, node), sequence.request.sampling.seed));
    const std::vector<int> children = draft.children(node);
    const auto next = std::ranges::find(children, verdict.tokens.back(),
                                        [&](int child) { return draft.nodes[static_cast<std::size_t>(child)].token; });
    if (next == children.end()) return verdict;
    verdict.path.push_back(node = *next);
  }
}

}  // namespace dculab
