// Among how many workgroups does a matmul divide its sum over k, and what does that take?
//
// Depends on shapes alone, not on the device: results are the same bits everywhere.
#pragma once

#include <algorithm>
#include <cstddef>

namespace dculab::lower::dculab_gpu {

struct SplitK {
  int parts = 1;
  int k_per_part = 0;  // a multiple of the step; the last part may have less
};

// `workgroups` serve the tiles of y; more are wanted when they are fewer than twice the compute units of the devices
// in mind (60 to 64). A part is never shorter than `step`: below that, writing and reading partial sums costs more than
// the parallelism brings.
[[nodiscard]] constexpr SplitK split_k(int workgroups, int k, int step) {
  constexpr int kWorkgroupsWanted = 128;
  const int steps = std::max(1, (k + step - 1) / step);
  const int parts = std::clamp((kWorkgroupsWanted + workgroups - 1) / workgroups, 1, steps);
  const int steps_per_part = (steps + parts - 1) / parts;
  return {(steps + steps_per_part - 1) / steps_per_part, steps_per_part * step};
}

// Floats of partial sums, [parts, m, n]; none when one part is all.
[[nodiscard]] constexpr std::size_t split_k_workspace(const SplitK& split, int m, int n) {
  if (split.parts == 1) return 0;
  return static_cast<std::size_t>(split.parts) * static_cast<std::size_t>(m) * static_cast<std::size_t>(n);
}

}  // namespace dculab::lower::dculab_gpu
