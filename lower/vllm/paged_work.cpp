#include "lower/vllm/paged_work.hpp"

#include <algorithm>
#include <bit>

namespace dculab::lower::vllm {
namespace {

constexpr int kThreads = 128;      // NUM_THREADS
constexpr double kLoadBytes = 16;  // of a group of lanes
constexpr double kComputed = 2;    // bytes of a value as it is multiplied
constexpr double kScoreBytes = 4;
constexpr double kConversions = 2;       // of a value of K and of Q
constexpr double kPerShuffle = 2;        // and the addition
constexpr double kPerScore = 10;         // scale, bias, mask, maximum, store
constexpr double kPerSoftmaxScore = 14;  // two loops: exponential and sum, then scaling, from LDS and back
constexpr double kPerLookUp = 10;        // a load, products of 64 bits, the loop

// Of a wave, for a block of K: each group of lanes has one token after another. Loops are unrolled, so that a load has
// its address in it.
[[nodiscard]] VectorWork key_work(const AttentionWork& work, int heads, int wave_size) {
  const int sharing = std::max(wave_size / work.block_size, 1);
  const double tokens = ceil_divide(work.block_size, wave_size);
  const double values = static_cast<double>(work.head_dim) / sharing;
  const double width = std::max(1.0, kLoadBytes / (sharing * kComputed));
  const double shuffles = std::bit_width(static_cast<unsigned>(sharing)) - 1;
  const double query_loads = values * kComputed / kLoadBytes;
  const double of_a_head = query_loads + values + shuffles * kPerShuffle + kPerScore;
  return {.full = tokens * (values / width + heads * of_a_head), .half = tokens * heads * values * kConversions};
}

// Of a wave, for a block of V: lanes beside each other have the tokens of a row, and rows follow. A row is multiplied
// and added in pairs, and its last pair in F32. The block's scores come from LDS and become pairs.
[[nodiscard]] VectorWork value_work(const AttentionWork& work, int heads, int wave_size) {
  const int width = std::min(static_cast<int>(kLoadBytes / kComputed), work.block_size);
  const int rows_at_once = std::max(1, wave_size * width / work.block_size);
  const double rows = ceil_divide(work.head_dim, rows_at_once);
  return {.full = rows * (1 + heads * 2.0) + heads * width * kScoreBytes / kLoadBytes,
          .half = heads * (rows * (width - 1 + 2) + width / 2.0)};
}

}  // namespace

VectorWork paged_work_per_token(const AttentionWork& work, int heads, int wave_size) {
  const VectorWork keys = key_work(work, heads, wave_size), values = value_work(work, heads, wave_size);
  const double lanes = static_cast<double>(wave_size) / work.block_size;
  return {.full = (keys.full + values.full + 2 * kPerLookUp) * lanes + heads * kPerSoftmaxScore,
          .half = (keys.half + values.half) * lanes};
}

TableLookUp paged_look_up(const Device& device) {
  return {.waits = 2.0 / std::max(1, kThreads / std::max(1, device.waves.wave_size))};
}

}  // namespace dculab::lower::vllm
