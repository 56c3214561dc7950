// Where the K and V of a tile of tokens lie, and asking for them before they are needed.
#if defined(DCULAB_KERNELS_CPU_KV_RUNS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_RUNS_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_RUNS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_RUNS_INL_HPP_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/cpu/attention_plan.hpp"
#include "kernels/cpu/vectors-inl.hpp"
#include "kernels/ops.hpp"
#include "lower/dculab_cpu/geometry.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

constexpr int kTileTokens = kKvTileTokens;  // K and V of a tile as F32: 32 KiB at head_dim 64, in L1

constexpr int round_up_to_lanes(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Where one KV head of one sequence is read from.
struct KvSource {
  const PagedAttentionArgs& args;
  const KvCacheView& cache;
  const std::int32_t* block_table;
  int seq, kv_head;
  int paged_tokens;  // that are read from blocks; where the others are, a format knows that has such

  KvSource(const PagedAttentionArgs& all, int sequence, int head, int tokens_in_blocks)
      : args(all),
        cache(all.cache),
        block_table(all.block_tables + std::ptrdiff_t{sequence} * all.max_blocks_per_seq),
        seq(sequence),
        kv_head(head),
        paged_tokens(tokens_in_blocks) {}
};

// Where a tile's tokens lie: one run of tokens for each block it touches, then those that are in no block.
struct KvRuns {
  struct Run {
    std::ptrdiff_t row;  // block * heads in a block + KV head
    int offset, tokens;  // in the block
  };
  Run runs[kTileTokens];
  int num_runs = 0;
  int begin = 0;  // the first token
  int unpaged_begin = 0, unpaged_end = 0;

  // Tokens [first, end).
  void find(const KvSource& source, int first, int end) {
    const KvCacheView& cache = source.cache;
    const int shift = std::countr_zero(static_cast<unsigned>(cache.block_size));
    begin = first, unpaged_begin = std::max(first, source.paged_tokens), unpaged_end = end;
    end = std::min(end, source.paged_tokens);
    num_runs = 0;
    for (int token = first; token < end;) {
      const int offset = token & (cache.block_size - 1);
      const int tokens = std::min(cache.block_size - offset, end - token);
      runs[num_runs++] = {std::ptrdiff_t{source.block_table[token >> shift]} * cache.heads_in_block() + source.kv_head,
                          offset, tokens};
      token += tokens;
    }
  }

  // Tokens [first, end) of a path, all of them in blocks.
  void find_path(const KvSource& source, const TreePath& path, int first, int end) {
    find(source, first, std::min(end, path.tree_begin));
    std::uint64_t rest = path.mask;
    for (int position = path.tree_begin; position < end; ++position, rest &= rest - 1) {
      if (position < first) continue;
      const int place = path.tree_begin + std::countr_zero(rest), block_size = source.cache.block_size;
      const std::ptrdiff_t block = source.block_table[place / block_size];
      runs[num_runs++] = {block * source.cache.heads_in_block() + source.kv_head, place % block_size, 1};
    }
  }
};

// The first token of a run, counted over the whole pool: rows of values and scales have this index.
HWY_INLINE std::ptrdiff_t first_token(const KvCacheView& cache, const KvRuns::Run& run) {
  return run.row * cache.block_size + run.offset;
}

// The cache lines of a tile to come, asked for a few at a time between multiply-adds: memory works while they do. All
// at once would fill the core's queue of misses, behind which its other loads wait.
class LinesAhead {
 public:
  void clear() { next_ = end_ = lines_; }

  void add(const void* begin, int bytes) {
    const auto before = static_cast<int>(reinterpret_cast<std::uintptr_t>(begin) % 64);
    const char* line = static_cast<const char*>(begin) - before;
    const char** const stop = end_ + std::min<std::ptrdiff_t>((before + bytes + 63) / 64, lines_ + kMost - end_);
    for (; end_ != stop; line += 64) *end_++ = line;
  }

  [[nodiscard]] int left() const { return static_cast<int>(end_ - next_); }
  HWY_INLINE void ask(int count) {
    for (const char** const stop = next_ + std::min<std::ptrdiff_t>(count, end_ - next_); next_ != stop; ++next_)
      hwy::Prefetch(*next_);
  }

 private:
  static constexpr int kMost = 40 * kTileTokens;  // F32 of head_dim 256 with a token a block; of more, the first

  const char* lines_[kMost];
  const char** next_ = lines_;
  const char** end_ = lines_;
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
