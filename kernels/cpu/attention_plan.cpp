#include "kernels/cpu/attention_plan.hpp"

#include <algorithm>
#include <bit>

#include "core/kv/table.hpp"

namespace dculab::kernels::cpu {
namespace {

using lower::dculab_cpu::kQueryRows;

constexpr int kSplitTokens = 16;  // query tokens up to which partitions are separate tasks

class AttentionPlanner {
 public:
  explicit AttentionPlanner(const PagedAttentionArgs& args)
      : args_(args),
        tile_tokens_(std::max(1, kQueryRows / (args.num_heads / args.cache.num_kv_heads))),
        together_(kv_format(args.cache.dtype).tokens_together) {}

  AttentionPlan plan() {
    for (int seq = 0; seq < args_.num_seqs; ++seq) {
      const int begin = args_.query_start_loc[seq], end = args_.query_start_loc[seq + 1];
      args_.tree.size_of(seq) > 0 ? add_tree(seq, begin, end) : add_chain(seq, begin, end);
    }
    return std::move(plan_);
  }

 private:
  void add_chain(int seq, int begin, int end) {
    const int computed = args_.context_lens[seq] - (end - begin);
    for (int token = begin, tokens = 0; token < end; token += tokens) {
      const int position = computed + token - begin;
      tokens = std::min(end - token, tile_tokens_);
      // All queries of a tile see the same tokens quantized.
      if (together_ > 1) tokens = std::min(tokens, together_ - position % together_);
      QueryTile tile{.seq = seq, .first_token = token, .tokens = tokens, .first_position = position};
      tile.context = tile.shared = position + tokens;
      add(tile, end - begin);
    }
  }

  // A token's tiles begin where they would if its path stood alone, so its bits are the same. Those before the tree are
  // the same for all tokens.
  void add_tree(int seq, int begin, int end) {
    const int tree_begin = args_.context_lens[seq] - args_.tree.sizes[seq];
    const auto first_path = static_cast<int>(plan_.paths.size());
    for (int token = begin; token < end; ++token) {
      const std::uint64_t mask = args_.tree.masks[token];
      plan_.paths.push_back({token, tree_begin + std::popcount(mask) - 1, tree_begin, mask});
    }
    std::stable_sort(plan_.paths.begin() + first_path, plan_.paths.end(),
                     [](const TreePath& a, const TreePath& b) { return a.position < b.position; });
    for (int first = 0, tokens = 0; first < end - begin; first += tokens) {
      tokens = std::min(end - begin - first, tile_tokens_);
      const auto path = plan_.paths.begin() + first_path + first;
      QueryTile tile{.seq = seq, .first_token = begin, .tokens = tokens, .first_position = path->position};
      tile.context = path[tokens - 1].position + 1;
      tile.shared = tree_begin / kKvTileTokens * kKvTileTokens;
      tile.first_path = first_path + first;
      add(tile, end - begin);
    }
  }

  void add(QueryTile& tile, int new_tokens) {
    tile.first_token_seen = first_loaded_token(args_.sliding_window, tile.first_position);
    const int index = static_cast<int>(plan_.tiles.size());
    if (new_tokens <= kSplitTokens && tile.partitions() > 1) {
      tile.first_partial = plan_.partials;
      plan_.partials += tile.partitions() * tile.tokens * args_.num_heads;
      for (int p = tile.first_partition(); p < tile.end_partition(); ++p) plan_.walks.push_back({index, p, p});
    } else {
      plan_.walks.push_back({index, tile.first_partition(), tile.end_partition() - 1});
    }
    plan_.tiles.push_back(tile);
  }

  const PagedAttentionArgs& args_;
  int tile_tokens_;
  int together_;  // tokens that the format quantizes together
  AttentionPlan plan_;
};

}  // namespace

AttentionPlan plan_attention(const PagedAttentionArgs& args) { return AttentionPlanner(args).plan(); }

}  // namespace dculab::kernels::cpu
