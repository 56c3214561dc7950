// Tokens that may follow a sequence, guessed to be verified by one step of the model: a chain, or a tree with several
// guesses for a place (Miao et al. 2024, SpecInfer; Cai et al. 2024, Medusa).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"

namespace dculab {

// Nodes of a tree at most: with the token they follow, a bit each in 64.
inline constexpr int kMostDraftTokens = 63;

struct DraftNode {
  static constexpr int kRoot = -1;

  TokenId token = 0;
  int parent = kRoot;  // an earlier node; kRoot: it follows the sequence's last token
  int rank = 0;        // among the guesses for its place, 0 the likeliest

  friend bool operator==(const DraftNode&, const DraftNode&) = default;
};

// A node stands after its parent, and children of one parent in order of rank.
struct DraftTree {
  std::vector<DraftNode> nodes{};  // [num_tokens()]
  // What each node was drawn from, [num_tokens(), vocab_size], rows of children of one parent alike; empty where the
  // guesses were not drawn: each is then as if drawn with probability 1.
  std::vector<float> probabilities{};

  [[nodiscard]] int num_tokens() const { return static_cast<int>(nodes.size()); }
  [[nodiscard]] bool empty() const { return nodes.empty(); }
  [[nodiscard]] std::vector<int> depths() const;  // [num_tokens()], 1 for a child of the root
  [[nodiscard]] int depth() const;                // of the deepest node; 0 of an empty tree
  [[nodiscard]] bool is_chain() const;            // each node follows the one before
  [[nodiscard]] std::vector<int> children(int parent) const;

  // Drops nodes from the end. What is left is a tree, because parents stand first.
  void truncate(int num_tokens);

  // Drops what is deeper.
  void limit_depth(int depth);
};

[[nodiscard]] DraftTree chain(std::span<const TokenId> tokens);

// The shape of a tree before its tokens are known.
struct DraftShape {
  struct Node {
    int parent = DraftNode::kRoot;
    int rank = 0;
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::vector<Node> nodes{};  // level by level, in order of rank within a parent

  [[nodiscard]] int num_tokens() const { return static_cast<int>(nodes.size()); }
  [[nodiscard]] std::vector<int> depths() const;  // as of a DraftTree
  [[nodiscard]] int depth() const;
  [[nodiscard]] bool is_chain() const;
  [[nodiscard]] int width() const;  // guesses for a place, at most

  friend bool operator==(const DraftShape&, const DraftShape&) = default;
};

[[nodiscard]] DraftShape chain_shape(int num_tokens);

// The `branches[i]` likeliest children of each node of level i.
[[nodiscard]] DraftShape full_tree_shape(std::span<const int> branches);

// vLLM's speculative_token_tree: paths of ranks from the root, "[(0,), (1,), (0, 0), (0, 1)]". Throws InputError for a
// text that is none, a path whose beginning is missing, and more than kMostDraftTokens paths.
[[nodiscard]] DraftShape parse_draft_shape(std::string_view text);
[[nodiscard]] std::string to_string(const DraftShape& shape);

// Who sees whom when the last token and a tree behind it are computed together: bit 0 the last token, bit i + 1 node i.
// Row 0 is the last token's, row i + 1 that of node i, its ancestors and itself. [num_tokens() + 1]
[[nodiscard]] std::vector<std::uint64_t> visibility(const DraftTree& tree);

}  // namespace dculab
