// How our CPU kernels cut attention and products into tasks. Prices of attention go by it. In a product's they take
// each operand as asked for once: what a kernel reads again from its caches is in its measured rate, or in what is
// reached of the peak.
#pragma once

#include <algorithm>
#include <cstddef>

#include "model/attention_work.hpp"

namespace dculab::lower::dculab_cpu {

inline constexpr int kPartitionTokens = 512;  // of the context; a multiple of the KV tile
inline constexpr int kQueryRows = 128;        // (token, head of the group) rows that share a pass over the KV tiles
static_assert(kPartitionTokens % kKvTileTokens == 0);

// A product of many rows of x and plain weights: blocks of both are packed, w in panels of a few rows.
struct PackedProduct {
  int panels = 0;                  // of all of w
  std::ptrdiff_t x_bytes = 0;      // of a block
  std::ptrdiff_t panel_bytes = 0;  // of a block
};

// Of w, that a task takes through x. The more, the less often x is read: at most what fits into half of L2, and so few
// that every thread has as many tasks. One where x stays in the other half.
[[nodiscard]] constexpr int panels_per_task(const PackedProduct& product, std::ptrdiff_t half_of_l2, int num_threads) {
  const std::ptrdiff_t fitting = product.x_bytes <= half_of_l2 ? 1 : half_of_l2 / product.panel_bytes;
  const int most = static_cast<int>(std::clamp<std::ptrdiff_t>(fitting, 1, product.panels));
  const int tasks = ((product.panels + most - 1) / most + num_threads - 1) / num_threads * num_threads;
  return (product.panels + tasks - 1) / tasks;
}

}  // namespace dculab::lower::dculab_cpu
