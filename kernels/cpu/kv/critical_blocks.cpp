// Bounds of the keys of each block, and the choice of the blocks that a query's attention loads.
#include "kernels/cpu/kv/kv_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/for_each_token.hpp"
#include "kernels/cpu/preconditions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kv/critical_blocks.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include "kernels/cpu/kv/critical_blocks-inl.hpp"
#include "kernels/cpu/kv/formats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {
namespace {

// ---- The bounds of keys ----

enum class Side : std::uint8_t { below, above };

// The nearest value on that side that is a BF16.
template <Side kSide>
HWY_INLINE Vector round_to_bf16(Vector value) {
  const hn::RebindToUnsigned<F32> u32;
  const hn::RebindToSigned<F32> i32;
  const auto bits = hn::BitCast(u32, value);
  const auto negative = hn::BitCast(u32, hn::ShiftRight<31>(hn::BitCast(i32, bits)));  // all ones, or 0
  const auto most = hn::Set(u32, 0xFFFFU);
  const auto added = kSide == Side::above ? hn::AndNot(negative, most) : hn::And(negative, most);
  return hn::BitCast(F32(), hn::And(hn::Add(bits, added), hn::Set(u32, 0xFFFF0000U)));
}

// New tokens of a sequence that lie in one block.
struct NewTokensOfBlock {
  std::ptrdiff_t row = 0;  // block * num_kv_heads
  int begin = 0, end = 0;  // in the block
};

// minima: [2, head_dim] of a block and KV head.
template <typename T>
void take_keys(const KvCacheView& cache, std::ptrdiff_t row, int begin, int end, Bf16* minima) {
  const int head_dim = cache.head_dim;
  const StoredRows<T> rows(cache);
  Bf16* const maxima = minima + head_dim;
  for (int d = 0; d < head_dim; d += kLanes) {
    const std::ptrdiff_t first = row * cache.block_size;
    const Vector key = key_row(cache, rows, first + begin).load(d, head_dim);
    Vector least = begin == 0 ? key : hn::Min(key, load_first(minima + d, head_dim - d));
    Vector most = begin == 0 ? key : hn::Max(key, load_first(maxima + d, head_dim - d));
    for (int token = begin + 1; token < end; ++token) {
      const Vector next = key_row(cache, rows, first + token).load(d, head_dim);
      least = hn::Min(least, next), most = hn::Max(most, next);
    }
    store_first(round_to_bf16<Side::below>(least), minima + d, head_dim - d);
    store_first(round_to_bf16<Side::above>(most), maxima + d, head_dim - d);
  }
}

// ---- The choice ----

// Ascending: larger bounds first, then the place that comes first. -0 and +0 are equal.
std::uint64_t order_of(float bound, int place) {
  const auto bits = std::bit_cast<std::uint32_t>(bound + 0.0F);
  const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{~ascending} << 32 | static_cast<std::uint32_t>(place);
}

class CriticalBlocks {
 public:
  CriticalBlocks(const ChooseCriticalBlocksArgs& args, Workspace& workspace, int workers)
      : args_(args), kv_heads_(args.cache.num_kv_heads), group_size_(args.num_heads / kv_heads_) {
    const std::size_t split = UpperBounds::floats(group_size_, args.cache.head_dim);
    const std::size_t orders = 2 * static_cast<std::size_t>(args.max_blocks_per_seq);
    scratch_floats_ = (std::max(split, orders) + 15) / 16 * 16;
    scratch_ = workspace.floats(scratch_floats_ * static_cast<std::size_t>(workers));
    for (int seq = 0; seq < args.num_seqs; ++seq) most_blocks_ = std::max(most_blocks_, num_blocks(seq));
  }

  void run(ThreadPool& threads) const {
    const int lists = args_.num_seqs * kv_heads_;
    const int parts = (most_blocks_ + kBlocksOfChoiceTask - 1) / kBlocksOfChoiceTask;
    threads.parallel_for(lists * parts, [&](int task, int worker) {
      const int list = task / parts, seq = list / kv_heads_, begin = task % parts * kBlocksOfChoiceTask;
      const int end = std::min(begin + kBlocksOfChoiceTask, num_blocks(seq));
      if (begin < end) UpperBounds(args_, seq, list % kv_heads_, memory(worker)).find(begin, end, bounds_of(list));
    });
    threads.parallel_for(lists, [&](int list, int worker) { choose(list, memory(worker)); });
    if (args_.chosen.query_start_loc != nullptr)
      for (int list = 0; list <= lists; ++list) args_.chosen.query_start_loc[list] = list;
  }

 private:
  [[nodiscard]] float* memory(int worker) const {
    return scratch_ + scratch_floats_ * static_cast<std::size_t>(worker);
  }
  [[nodiscard]] int num_blocks(int seq) const {
    return (args_.context_lens[seq] + args_.cache.block_size - 1) / args_.cache.block_size;
  }
  [[nodiscard]] float* bounds_of(int list) const {
    return args_.upper_bounds + std::ptrdiff_t{list} * args_.max_blocks_per_seq;
  }

  // The order of the last candidate that is chosen, where some of places [1, end) are.
  [[nodiscard]] std::uint64_t last_chosen(const float* bounds, int end, int chosen, float* memory) const {
    auto* const orders = reinterpret_cast<std::uint64_t*>(memory);
    for (int place = 1; place < end; ++place) orders[place - 1] = order_of(bounds[place], place);
    std::nth_element(orders, orders + chosen - 1, orders + end - 1);
    return orders[chosen - 1];
  }

  void choose(int list, float* memory) const {
    const int seq = list / kv_heads_, kv_head = list % kv_heads_, blocks = num_blocks(seq);
    const int count = chosen_blocks(blocks, args_.budgets[seq], args_.recent_blocks);
    const int recent = std::max(1, blocks - args_.recent_blocks), candidates = count - 1 - (blocks - recent);
    const float* const bounds = bounds_of(list);
    std::uint64_t last = ~std::uint64_t{0};
    if (count < blocks) last = candidates > 0 ? last_chosen(bounds, recent, candidates, memory) : 0;
    const ChosenBlocks& chosen = args_.chosen;
    const std::ptrdiff_t first = std::ptrdiff_t{list} * chosen.stride;
    const std::int32_t* table = args_.block_tables + std::ptrdiff_t{seq} * args_.max_blocks_per_seq;
    for (int place = 0, i = 0; place < blocks; ++place) {
      if (place > 0 && place < recent && order_of(bounds[place], place) > last) continue;
      if (chosen.places != nullptr) chosen.places[first + i] = place;
      chosen.block_tables[first + i++] = table[place] * kv_heads_ + kv_head;
    }
    chosen.context_lens[list] = args_.context_lens[seq] - (blocks - count) * args_.cache.block_size;
    copy_queries(seq, kv_head);
  }

  void copy_queries(int seq, int kv_head) const {
    if (args_.chosen.queries == nullptr) return;
    const int width = group_size_ * args_.cache.head_dim;
    const float* q = args_.q + seq * args_.q_stride + std::ptrdiff_t{kv_head} * width;
    std::copy_n(q, width,
                static_cast<float*>(args_.chosen.queries) + (std::ptrdiff_t{seq} * kv_heads_ + kv_head) * width);
  }

  const ChooseCriticalBlocksArgs& args_;
  int kv_heads_, group_size_;
  int most_blocks_ = 0;
  std::size_t scratch_floats_ = 0;  // per worker: split queries, or the orders of candidates
  float* scratch_ = nullptr;
};

}  // namespace

void update_block_bounds_impl(ThreadPool& threads, const UpdateBlockBoundsArgs& args) {
  const KvCacheView& cache = args.cache;
  int most_blocks = 0;  // with new tokens, of a sequence
  const auto computed = [&](int seq) {
    return args.context_lens[seq] - (args.query_start_loc[seq + 1] - args.query_start_loc[seq]);
  };
  for (int seq = 0; seq < args.num_seqs; ++seq)
    most_blocks = std::max(most_blocks, (args.context_lens[seq] + cache.block_size - 1) / cache.block_size -
                                            computed(seq) / cache.block_size);
  const std::int64_t tokens = args.query_start_loc[args.num_seqs] - args.query_start_loc[0];
  const int tasks = args.num_seqs * most_blocks;
  const std::int64_t values = tokens * cache.num_kv_heads * cache.head_dim;
  for_each_token(threads, tasks, values / std::max(1, tasks), [&](int task) {
    const int seq = task / most_blocks, place = computed(seq) / cache.block_size + task % most_blocks;
    const int first = place * cache.block_size, begin = std::max(first, computed(seq));
    const int end = std::min(first + cache.block_size, static_cast<int>(args.context_lens[seq]));
    if (begin >= end) return;
    const std::int32_t block = args.block_tables[std::ptrdiff_t{seq} * args.max_blocks_per_seq + place];
    with_row_type(cache.dtype, [&]<typename T>(const T*) {
      for (int head = 0; head < cache.num_kv_heads; ++head) {
        const std::ptrdiff_t row = std::ptrdiff_t{block} * cache.num_kv_heads + head;
        take_keys<T>(cache, row, begin - first, end - first,
                     reinterpret_cast<Bf16*>(args.bounds) + row * 2 * cache.head_dim);
      }
    });
  });
}

void choose_critical_blocks_impl(ThreadPool& threads, Workspace& workspace, const ChooseCriticalBlocksArgs& args) {
  CriticalBlocks(args, workspace, threads.num_threads()).run(threads);
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(update_block_bounds_impl);
HWY_EXPORT(choose_critical_blocks_impl);

void update_block_bounds(ThreadPool& threads, const UpdateBlockBoundsArgs& args) {
  require_rows(args.cache, "update_block_bounds");
  require_kv_cache(args.cache, "update_block_bounds");
  HWY_DYNAMIC_DISPATCH(update_block_bounds_impl)(threads, args);
}

void choose_critical_blocks(ThreadPool& threads, Workspace& workspace, const ChooseCriticalBlocksArgs& args) {
  require(args.cache.head_dim % 8 == 0, "choose_critical_blocks", "head_dim must be a multiple of 8");
  require(args.recent_blocks >= 1, "choose_critical_blocks", "the block being written is always chosen");
  if (args.num_seqs == 0) return;
  HWY_DYNAMIC_DISPATCH(choose_critical_blocks_impl)(threads, workspace, args);
}

void critical_attention(ThreadPool& threads, Workspace& workspace, const PagedAttentionArgs& args,
                        const ChosenBlocks& chosen) {
  constexpr const char* kName = "critical_attention";
  require_rows(args.cache, kName);
  require(args.alibi_slopes == nullptr, kName, "ALiBi is not supported");
  require(args.sliding_window == 0, kName, "a sliding window is not supported");
  require(args.tree.sizes == nullptr, kName, "trees are not supported");
  require(chosen.queries != nullptr || args.q_stride == std::int64_t{args.num_heads} * args.cache.head_dim, kName,
          "queries that do not lie side by side need a copy");
  require(args.out_row() == std::int64_t{args.num_heads} * args.cache.value_width(), kName,
          "results must lie side by side");
  paged_attention(threads, workspace, over_chosen_blocks(args, chosen));
}

}  // namespace dculab::kernels::cpu
#endif
