// Which task of attention computes what.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.hpp"
#include "lower/dculab_cpu/geometry.hpp"

namespace dculab::kernels::cpu {

using lower::dculab_cpu::kPartitionTokens;

// What one new token of a tree sees: the places before the tree, then those of the mask. A place's position on the path
// is its rank among these.
struct TreePath {
  int token = 0;     // index into q and out
  int position = 0;  // of the token
  int tree_begin = 0;
  std::uint64_t mask = 0;  // bit j: place tree_begin + j
};

// A few new tokens of one sequence. They follow one another, or are of a tree and in order of their positions.
struct QueryTile {
  int seq = 0;
  int first_token = 0;  // index into q and out; of a tree, of all new tokens of the sequence
  int tokens = 0;
  int first_position = 0;    // in the sequence
  int first_token_seen = 0;  // the first that any of its tokens sees, at the beginning of a KV tile
  int context = 0;           // tokens that the last one sees
  int shared = 0;            // of these, the first: all of the tile read them where they stand, in whole KV tiles
  int first_path = -1;       // of AttentionPlan::paths; -1: no tree
  int first_partial = -1;    // of partials_per_head for each KV head; -1 when one task walks the whole context

  [[nodiscard]] int first_partition() const { return first_token_seen / kPartitionTokens; }
  [[nodiscard]] int end_partition() const { return (context + kPartitionTokens - 1) / kPartitionTokens; }
  [[nodiscard]] int partitions() const { return end_partition() - first_partition(); }
};

// One task for each KV head: a query tile and the partitions it attends to.
struct AttentionWalk {
  int tile = 0;
  int first_partition = 0, last_partition = 0;
};

struct AttentionPlan {
  std::vector<QueryTile> tiles;
  std::vector<AttentionWalk> walks;
  std::vector<TreePath> paths;  // of trees, tile by tile
  int partials = 0;             // (row, partition) results in memory, all KV heads together

  // Those of a tile; null without a tree.
  [[nodiscard]] const TreePath* paths_of(const QueryTile& tile) const {
    return tile.first_path < 0 ? nullptr : paths.data() + tile.first_path;
  }
};

[[nodiscard]] AttentionPlan plan_attention(const PagedAttentionArgs& args);

}  // namespace dculab::kernels::cpu
