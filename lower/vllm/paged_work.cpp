#include "lower/vllm/paged_work.hpp"

#include <algorithm>
#include <bit>

namespace dculab::lower::vllm {
namespace {

constexpr int kThreads = 128;            // NUM_THREADS
constexpr double kLoadBytes = 16;        // of a group of lanes
constexpr double kComputed = 2;          // bytes of a value as it is multiplied
constexpr double kPerKey = 3;            // two conversions, a multiply-add
constexpr double kPerValue = 1;          // in pairs: a multiplication, an addition
constexpr double kPerSum = 3;            // the last pair of a row: a conversion each, an addition
constexpr double kPerShuffle = 2;        // and the addition
constexpr double kPerScore = 10;         // scale, bias, mask, maximum, store
constexpr double kPerSoftmaxScore = 14;  // two loops: exponential and sum, then scaling, from LDS and back
constexpr double kPerLookUp = 10;        // a load, products of 64 bits, the loop

// Of a wave, for a block of K: each group of lanes has one token after another.
[[nodiscard]] double key_instructions(const AttentionWork& work, int heads, int wave_size) {
  const int sharing = std::max(wave_size / work.block_size, 1);
  const double tokens = ceil_divide(work.block_size, wave_size);
  const double values = static_cast<double>(work.head_dim) / sharing;
  const double width = std::max(1.0, kLoadBytes / (sharing * kComputed));
  const double shuffles = std::bit_width(static_cast<unsigned>(sharing)) - 1;
  const double query_loads = values * kComputed / kLoadBytes;
  const double of_a_head = query_loads + values * kPerKey + shuffles * kPerShuffle + kPerScore;
  return tokens * (values / width + heads * of_a_head);  // loops are unrolled: a load's address is in it
}

// Of a wave, for a block of V: lanes beside each other have the tokens of a row, and rows follow.
[[nodiscard]] double value_instructions(const AttentionWork& work, int heads, int wave_size) {
  const int width = std::min(static_cast<int>(kLoadBytes / kComputed), work.block_size);
  const int rows_at_once = std::max(1, wave_size * width / work.block_size);
  const double rows = ceil_divide(work.head_dim, rows_at_once);
  return rows * (1 + heads * (width * kPerValue + kPerSum)) + heads * width;  // and the block's scores
}

}  // namespace

double paged_work_per_token(const AttentionWork& work, int heads, int wave_size) {
  const double block =
      key_instructions(work, heads, wave_size) + value_instructions(work, heads, wave_size) + 2 * kPerLookUp;
  return block * wave_size / work.block_size + heads * kPerSoftmaxScore;
}

TableLookUp paged_look_up(const Device& device) {
  return {.waits = 2.0 / std::max(1, kThreads / std::max(1, device.waves.wave_size))};
}

}  // namespace dculab::lower::vllm
