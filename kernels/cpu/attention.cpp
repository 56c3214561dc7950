// Paged attention for prefill and decode: which task computes what, in two passes when contexts are split.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/cpu/attention_plan.hpp"
#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/attention_state-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

// The first token that a query at `position` sees.
int first_seen(int position, int sliding_window) {
  return sliding_window == 0 ? 0 : std::max(0, position + 1 - sliding_window);
}

class Attention {
 public:
  Attention(const PagedAttentionArgs& args, Workspace& workspace, int workers)
      : args_(args),
        plan_(plan_attention(args)),
        group_size_(args.num_heads / args.cache.num_kv_heads),
        head_dim_(args.cache.head_dim),
        value_dim_(args.cache.value_width()),
        width_(round_up_to_lanes(value_dim_)) {
    for (const QueryTile& tile : plan_.tiles) max_rows_ = std::max(max_rows_, tile.tokens * group_size_);
    scratch_floats_ = KvTile::floats(head_dim_, value_dim_) + SoftmaxRows::floats(max_rows_, head_dim_, value_dim_) +
                      static_cast<std::size_t>((max_rows_ + 1) * partial_floats());
    scratch_floats_ = (scratch_floats_ + 15) / 16 * 16;
    const std::size_t partials = static_cast<std::size_t>(plan_.partials) * static_cast<std::size_t>(partial_floats());
    scratch_ = workspace.floats(scratch_floats_ * static_cast<std::size_t>(workers) + partials);
    partials_ = scratch_ + scratch_floats_ * static_cast<std::size_t>(workers);
  }

  void run(ThreadPool& threads) const {
    const int kv_heads = args_.cache.num_kv_heads, partitioned_walks = static_cast<int>(plan_.walks.size());
    threads.parallel_for(partitioned_walks * kv_heads, [&](int task, int worker) {
      walk(task % partitioned_walks, task / partitioned_walks, worker);
    });
    if (plan_.partials == 0) return;
    threads.parallel_for(static_cast<int>(plan_.tiles.size()) * kv_heads, [&](int task, int worker) {
      combine(plan_.tiles[static_cast<std::size_t>(task / kv_heads)], task % kv_heads, worker);
    });
  }

 private:
  [[nodiscard]] int partial_floats() const { return Partial::floats(width_); }
  [[nodiscard]] Partial partial(const QueryTile& tile, int kv_head, int partition, int row) const {
    const int rows = tile.tokens * group_size_;
    const std::ptrdiff_t index =
        tile.first_partial + (std::ptrdiff_t{kv_head} * tile.partitions() + partition - tile.first_partition()) * rows +
        row;
    return {partials_ + index * partial_floats()};
  }
  [[nodiscard]] Distance distance(int kv_head) const {
    const float* slopes = args_.alibi_slopes;
    return {slopes == nullptr ? nullptr : slopes + kv_head * group_size_, args_.sliding_window, args_.logit_soft_cap};
  }
  [[nodiscard]] int token_of(const QueryTile& tile, int index) const {
    const TreePath* const paths = plan_.paths_of(tile);
    return paths == nullptr ? tile.first_token + index : paths[index].token;
  }
  [[nodiscard]] int position_of(const QueryTile& tile, int index) const {
    const TreePath* const paths = plan_.paths_of(tile);
    return paths == nullptr ? tile.first_position + index : paths[index].position;
  }
  [[nodiscard]] float* output(const QueryTile& tile, int kv_head, int row) const {
    const std::ptrdiff_t token = token_of(tile, row / group_size_);
    return args_.out + token * args_.out_row() + (kv_head * group_size_ + row % group_size_) * value_dim_;
  }

  // One query tile and KV head over the partitions of a walk.
  void walk(int index, int kv_head, int worker) const {
    const AttentionWalk& walk = plan_.walks[static_cast<std::size_t>(index)];
    const QueryTile& tile = plan_.tiles[static_cast<std::size_t>(walk.tile)];
    float* memory = scratch_ + scratch_floats_ * static_cast<std::size_t>(worker);
    const KvTile kv(memory, head_dim_, value_dim_);
    memory += KvTile::floats(head_dim_, value_dim_);
    SoftmaxRows rows(memory, max_rows_, head_dim_, value_dim_);
    memory += SoftmaxRows::floats(max_rows_, head_dim_, value_dim_);
    rows.take_queries(args_.q + kv_head * group_size_ * head_dim_, args_.q_stride, group_size_, args_.scale, tile,
                      plan_.paths_of(tile), distance(kv_head));
    const auto folded = [&](int row) { return Partial{memory + row * partial_floats()}; };
    const bool split = tile.first_partial >= 0;
    if (!split) {
      for (int row = 0; row < rows.rows(); ++row) folded(row).clear(width_);
    }
    for (int p = walk.first_partition; p <= walk.last_partition; ++p) {
      walk_partition(tile, kv_head, p, kv, rows);
      const int last = rows.last_row_seeing((p + 1) * kPartitionTokens);
      for (int row = rows.first_row_seeing(p * kPartitionTokens); row < last; ++row) {
        const Partial result = split ? partial(tile, kv_head, p, row) : folded(rows.rows());
        rows.finish_partition(row, result);
        if (!split) folded(row).fold(result, width_);
      }
    }
    if (split) return;
    for (int row = 0; row < rows.rows(); ++row) folded(row).finish(output(tile, kv_head, row), value_dim_);
  }

  // What the tile's tokens share, then, in a tree, what is left of each token's path.
  void walk_partition(const QueryTile& tile, int kv_head, int partition, const KvTile& kv, SoftmaxRows& rows) const {
    const KvSource source(args_, tile.seq, kv_head, paged_tokens(args_.cache, tile.first_position + 1));
    const int begin = std::max(tile.first_token_seen, partition * kPartitionTokens);
    const int end = std::min(tile.context, (partition + 1) * kPartitionTokens);
    rows.start_partition();
    with_attend(kv, source, rows, {0, rows.rows()}, [&](auto&& attend) {
      const auto find = [&](int position, KvRuns& runs) {
        runs.find(source, position, std::min(position + kTileTokens, tile.shared));
      };
      walk_tiles(begin, std::min(end, tile.shared), find, attend);
    });
    if (const TreePath* const paths = plan_.paths_of(tile); paths != nullptr && end > tile.shared)
      for (int token = 0; token < tile.tokens; ++token) {
        const SoftmaxRows::Range own{token * group_size_, (token + 1) * group_size_};
        walk_path(paths[token], source, std::max(begin, tile.shared), end, kv, rows, own);
      }
  }

  // Tokens [begin, end) of a path, of which the rows of its last token see those before it and itself.
  void walk_path(const TreePath& path, const KvSource& source, int begin, int end, const KvTile& kv,
                 const SoftmaxRows& rows, SoftmaxRows::Range own) const {
    with_attend(kv, source, rows, own, [&](auto&& attend) {
      const auto find = [&](int position, KvRuns& runs) {
        runs.find_path(source, path, position, std::min(position + kTileTokens, path.position + 1));
      };
      walk_tiles(std::max(begin, first_loaded_token(args_.sliding_window, path.position)),
                 std::min(end, path.position + 1), find, attend);
    });
  }

  // Calls walk(attend), where attend(where, position, count, lines of the next tile) serves some rows.
  template <typename Walk>
  void with_attend(const KvTile& kv, const KvSource& source, const SoftmaxRows& rows, SoftmaxRows::Range served,
                   Walk&& walk) const {
    const int count_of_rows = served.end - served.begin;
    if (count_of_rows <= kStoredTileRows && lies_in_rows(args_.cache.dtype))
      return with_row_type(args_.cache.dtype, [&]<typename T>(const T*) {
        if constexpr (kStoredTileRows > 0)
          walk([&](const KvRuns& where, int position, int count, LinesAhead& ahead) {
            rows.attend(StoredTile<T>(args_.cache, where), served, position, count, ahead);
          });
      });
    walk([&](const KvRuns& where, int position, int count, LinesAhead& ahead) {
      // Widening a tile takes about as long as the arithmetic of eight rows on it.
      kv.fill(source, where, ahead, ahead.left() * 8 / (8 + count_of_rows));
      rows.attend(WidenedTile{kv, head_dim_, count}, served, position, count, ahead);
    });
  }

  // Calls attend(where, position, count, lines of the next tile) with each tile of tokens [begin, end). find(position,
  // runs) says where the one at a position lies.
  template <typename Find, typename Attend>
  void walk_tiles(int begin, int end, const Find& find, Attend&& attend) const {
    if (begin >= end) return;
    KvRuns in_turn[2];
    LinesAhead ahead;
    find(begin, in_turn[0]);
    for (int position = begin; position < end; position += kTileTokens) {
      const int turn = (position - begin) / kTileTokens % 2;
      find(position + kTileTokens, in_turn[1 - turn]);
      plan_lines(ahead, args_.cache, in_turn[1 - turn]);
      attend(in_turn[turn], position, std::min(kTileTokens, end - position), ahead);
    }
  }

  // The second pass: folds the partitions of one split query tile and KV head.
  void combine(const QueryTile& tile, int kv_head, int worker) const {
    if (tile.first_partial < 0) return;
    const Partial folded{scratch_ + scratch_floats_ * static_cast<std::size_t>(worker)};
    for (int row = 0; row < tile.tokens * group_size_; ++row) {
      const int position = position_of(tile, row / group_size_);
      folded.clear(width_);
      for (int p = first_seen(position, args_.sliding_window) / kPartitionTokens; p * kPartitionTokens <= position; ++p)
        folded.fold(partial(tile, kv_head, p, row), width_);
      folded.finish(output(tile, kv_head, row), value_dim_);
    }
  }

  const PagedAttentionArgs& args_;
  const AttentionPlan plan_;
  int group_size_, head_dim_, value_dim_, width_;
  int max_rows_ = 0;
  std::size_t scratch_floats_ = 0;  // per worker: KV tile, rows, folded partials and one more
  float* scratch_ = nullptr;
  float* partials_ = nullptr;  // of split tiles: [kv_heads, partitions, rows] each
};

}  // namespace

void paged_attention_impl(ThreadPool& threads, Workspace& workspace, const PagedAttentionArgs& args) {
  Attention(args, workspace, threads.num_threads()).run(threads);
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(paged_attention_impl);

void paged_attention(ThreadPool& threads, Workspace& workspace, const PagedAttentionArgs& args) {
  require_kv_cache(args.cache, "paged_attention");
  require(args.sliding_window >= 0, "paged_attention", "a negative sliding window");
  require(args.cache.value_width() == args.cache.head_dim || lies_in_rows(args.cache.dtype), "paged_attention",
          "formats that do not lie in rows need keys and values of one size");
  require(args.tree.sizes == nullptr || lies_in_rows(args.cache.dtype), "paged_attention",
          "formats that do not lie in rows do not serve trees");
  HWY_DYNAMIC_DISPATCH(paged_attention_impl)(threads, workspace, args);
}

}  // namespace dculab::kernels::cpu
#endif
