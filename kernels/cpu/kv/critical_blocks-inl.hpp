// The upper bounds of q · k of blocks, from the bounds of their keys.
#if defined(DCULAB_KERNELS_CPU_KV_CRITICAL_BLOCKS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_CRITICAL_BLOCKS_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_CRITICAL_BLOCKS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_CRITICAL_BLOCKS_INL_HPP_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "kernels/cpu/vectors-inl.hpp"
#include "kernels/kv/critical_blocks.hpp"
#include "lower/kv/critical_blocks_geometry.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

using lower::dculab_cpu::kBlocksOfChoiceTask;
using lower::dculab_cpu::kChoiceBlocks;
using lower::dculab_cpu::kChoiceHeads;
constexpr int kPairsAhead = 4;  // asked for before they are read: rows lie wherever blocks do

// A query that is negative in a channel meets the minimum there, any other the maximum: the bound is one product of
// [min(q, 0), max(q, 0)] and [minima, maxima].
class UpperBounds {
 public:
  // floats that split queries take, with rows of zeros up to whole kChoiceHeads
  static std::size_t floats(int group_size, int head_dim) {
    return static_cast<std::size_t>((group_size + kChoiceHeads - 1) / kChoiceHeads * kChoiceHeads * 2 * head_dim);
  }

  UpperBounds(const ChooseCriticalBlocksArgs& args, int seq, int kv_head, float* split)
      : args_(args),
        kv_head_(kv_head),
        group_size_(args.num_heads / args.cache.num_kv_heads),
        width_(2 * args.cache.head_dim),
        table_(args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq),
        split_(split) {
    const int head_dim = args.cache.head_dim;
    const float* q = args.q + seq * args.q_stride + std::ptrdiff_t{kv_head} * group_size_ * head_dim;
    std::fill_n(split, floats(group_size_, head_dim), 0.0F);
    for (int head = 0; head < group_size_; ++head, q += head_dim, split += width_)
      for (int d = 0; d < head_dim; ++d) split[q[d] < 0 ? d : head_dim + d] = q[d];
  }

  // Of the blocks at places [begin, end).
  void find(int begin, int end, float* bounds) const {
    for (int place = begin; place < end; place += kChoiceBlocks) {
      const int ahead = place + kPairsAhead * kChoiceBlocks;
      for (int i = ahead; i < std::min(end, ahead + kChoiceBlocks); ++i) ask_for(row(i));
      const Bf16* const rows[kChoiceBlocks] = {row(place), row(std::min(place + 1, end - 1))};
      float largest[kChoiceBlocks];
      std::fill_n(largest, kChoiceBlocks, -std::numeric_limits<float>::infinity());
      for (int head = 0; head < group_size_; head += kChoiceHeads) take_heads(rows, head, largest);
      std::copy_n(largest, std::min(kChoiceBlocks, end - place), bounds + place);
    }
  }

 private:
  [[nodiscard]] const Bf16* row(int place) const {
    const std::ptrdiff_t index = std::ptrdiff_t{table_[place]} * args_.cache.num_kv_heads + kv_head_;
    return reinterpret_cast<const Bf16*>(args_.bounds) + index * width_;
  }
  void ask_for(const Bf16* from) const {
    for (int i = 0; i < width_; i += 32) hwy::Prefetch(from + i);
  }

  HWY_INLINE void take_heads(const Bf16* const (&rows)[kChoiceBlocks], int first_head, float* largest) const {
    Vector sums[kChoiceBlocks * kChoiceHeads];
    unrolled<kChoiceBlocks * kChoiceHeads>([&](auto i) DCULAB_INLINE { sums[i] = hn::Zero(F32()); });
    const float* const q = split_ + std::ptrdiff_t{first_head} * width_;
    for (int d = 0; d < width_; d += kLanes) {
      const Vector bounds[kChoiceBlocks] = {load(rows[0] + d), load(rows[1] + d)};
      unrolled<kChoiceHeads>([&](auto head) DCULAB_INLINE {
        const Vector values = load(q + head * width_ + d);
        unrolled<kChoiceBlocks>([&](auto block) DCULAB_INLINE {
          Vector& total = sums[block * kChoiceHeads + head];
          total = hn::MulAdd(values, bounds[block], total);
        });
      });
    }
    for (int block = 0; block < kChoiceBlocks; ++block) {
      float totals[kChoiceHeads];
      const Vector* const of_block = sums + block * kChoiceHeads;
      sum_each(of_block[0], of_block[1], of_block[2], of_block[3], totals);
      const int heads = std::min(kChoiceHeads, group_size_ - first_head);
      largest[block] = std::max(largest[block], *std::max_element(totals, totals + heads));
    }
  }

  const ChooseCriticalBlocksArgs& args_;
  int kv_head_, group_size_, width_;
  const std::int32_t* table_;
  float* split_;  // [heads, 2, head_dim]
};
static_assert(kChoiceBlocks == 2 && kChoiceHeads == 4);

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
