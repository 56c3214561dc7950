// Which blocks a sequence and KV head load: those with the largest upper bounds, found digit by digit from the top of
// the bounds' bits, and the first and recent ones; then their list, in order.
#pragma once

#include "kernels/gpu/kv/critical_blocks.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kDigits = 256;  // values of one digit
static_assert(kDigits == kBoundsThreads);

struct ChoiceShared {
  std::uint32_t counts[kDigits];           // candidates with each digit
  std::int32_t sums[kBoundsThreads / 32];  // of each wave
  std::int32_t digit, larger_digits;       // the digit that the last chosen candidate has; those that are larger
};

// Larger bounds have larger bits; -0 and +0 are equal.
__device__ __forceinline__ std::uint32_t ascending_bits(float bound) {
  const auto bits = __builtin_bit_cast(std::uint32_t, bound + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// The candidates at places [1, end) that are chosen: all above `bits`, and of those equal to it the first `equal`.
struct Threshold {
  std::uint32_t bits;
  int equal;
};

template <int kWave>
__device__ __forceinline__ Threshold find_threshold(const float* bounds, int end, int chosen, ChoiceShared& shared) {
  Threshold threshold{0, chosen};
  std::uint32_t known = 0;  // mask of the digits that are known
  DCULAB_ROLLED
  for (int shift = 8 * (kChoiceDigits - 1); shift >= 0; shift -= 8) {
    shared.counts[thread_index()] = 0;
    barrier();
    for (int place = 1 + thread_index(); place < end; place += kBoundsThreads) {
      const std::uint32_t bits = ascending_bits(load(bounds + place));
      if ((bits & known) == threshold.bits) (void)add_shared(shared.counts[bits >> shift & 0xFFU], 1);
    }
    barrier();
    const int digit = kDigits - 1 - thread_index(), count = static_cast<int>(shared.counts[digit]);
    const LaneSums sums = workgroup_prefix_sum<kWave, kBoundsThreads>(count, shared.sums);
    if (sums.before < threshold.equal && threshold.equal <= sums.before + count) {
      shared.digit = digit;
      shared.larger_digits = sums.before;
    }
    barrier();
    threshold.bits |= static_cast<std::uint32_t>(shared.digit) << shift;
    threshold.equal -= shared.larger_digits;
    known |= 0xFFU << shift;
    barrier();
  }
  return threshold;
}

__device__ __forceinline__ void copy_queries(const ChooseCriticalBlocks& args, int seq, int kv_head) {
  if (args.chosen.queries == nullptr) return;
  const int width = args.num_heads / args.cache.num_kv_heads * args.cache.head_dim;
  const std::int64_t from = seq * args.q_stride + static_cast<std::int64_t>(kv_head) * width;
  const std::int64_t to = list_of(args, seq, kv_head) * width;
  for (int i = thread_index(); i < width; i += kBoundsThreads)
    store_number(args.chosen.queries, args.q.dtype, to + i, load_number(args.q.data, args.q.dtype, from + i));
}

// The workgroup's list: 256 places at a time. Of a place's neighbours before it, those that are chosen anyway are
// counted in the lower half of a word, those equal to the threshold in the upper.
template <int kWave>
__device__ __forceinline__ void write_list(const ChooseCriticalBlocks& args, std::int64_t list, int blocks, int recent,
                                           Threshold threshold, ChoiceShared& shared) {
  const float* bounds = args.upper_bounds + list * args.max_blocks_per_seq;
  const std::int64_t first = list * args.chosen.stride;
  const std::int32_t* table = args.block_tables + static_cast<std::int64_t>(workgroup_y()) * args.max_blocks_per_seq;
  int above = 0, equal = 0;  // at the places before
  for (int begin = 0; begin < blocks; begin += kBoundsThreads) {
    const int place = begin + thread_index();
    const bool is_candidate = place > 0 && place < recent;
    const std::uint32_t bits = is_candidate ? ascending_bits(load(bounds + place)) : 0;
    const bool is_above = place < blocks && (!is_candidate || bits > threshold.bits);
    const bool is_equal = is_candidate && bits == threshold.bits;
    const LaneSums sums = workgroup_prefix_sum<kWave, kBoundsThreads>(
        static_cast<int>(is_above) + (static_cast<int>(is_equal) << 16), shared.sums);
    const int own_equal = equal + (sums.before >> 16);
    if (is_above || (is_equal && own_equal < threshold.equal)) {
      const std::int64_t to = first + above + (sums.before & 0xFFFF) + smaller(own_equal, threshold.equal);
      if (args.chosen.places != nullptr) store(args.chosen.places + to, static_cast<std::int32_t>(place));
      store(args.chosen.block_tables + to,
            static_cast<std::int32_t>(load(table + place) * args.cache.num_kv_heads + workgroup_x()));
    }
    above += sums.total & 0xFFFF;
    equal += sums.total >> 16;
  }
}

// Grid: KV heads, sequences.
template <int kWave>
__global__ void __launch_bounds__(kBoundsThreads) choose_blocks_kernel(ChooseLaunch launch) {
  DCULAB_SHARED(ChoiceShared, shared);
  const ChooseCriticalBlocks& args = launch.args;
  const int kv_head = workgroup_x(), seq = workgroup_y(), blocks = num_blocks_of(args, seq);
  const int count = chosen_blocks(blocks, load(args.budgets + seq), args.recent_blocks);
  const int recent = blocks - args.recent_blocks > 1 ? blocks - args.recent_blocks : 1;
  const int candidates = count - 1 - (blocks - recent);
  const std::int64_t list = list_of(args, seq, kv_head);
  Threshold threshold{0xFFFFFFFFU, 0};  // none
  if (count == blocks)
    threshold = {0, 0};  // all: no bound has these bits
  else if (candidates > 0)
    threshold = find_threshold<kWave>(args.upper_bounds + list * args.max_blocks_per_seq, recent, candidates, shared);
  write_list<kWave>(args, list, blocks, recent, threshold, shared);
  copy_queries(args, seq, kv_head);
  if (thread_index() == 0)
    store(args.chosen.context_lens + list,
          static_cast<std::int32_t>(load(args.context_lens + seq) - (blocks - count) * args.cache.block_size));
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
