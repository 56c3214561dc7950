#include "kernels/gpu/matmul/gptq_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include "core/error.hpp"

namespace dculab::kernels::gpu {
namespace {

void require_full_groups(const GptqWeightView& weight) {
  const int groups = weight.in_features / weight.group_size;
  std::vector<int> rows(static_cast<std::size_t>(groups));
  for (int k = 0; k < weight.in_features; ++k) {
    const int group = weight.g_idx[k];
    if (group < 0 || group >= groups)
      throw InputError("g_idx puts in-feature " + std::to_string(k) + " into group " + std::to_string(group) +
                       ", but there are " + std::to_string(groups) + " groups; the checkpoint is damaged");
    ++rows[static_cast<std::size_t>(group)];
  }
  for (int group = 0; group < groups; ++group) {
    const int count = rows[static_cast<std::size_t>(group)];
    if (count != weight.group_size)
      throw InputError("g_idx gives group " + std::to_string(group) + " " + std::to_string(count) +
                       " in-features; the GPU kernels need " + std::to_string(weight.group_size) + " in every group");
  }
}

}  // namespace

GptqLayout sort_by_group(const GptqWeightView& weight) {
  if (weight.g_idx == nullptr) return {};
  require_full_groups(weight);
  if (std::is_sorted(weight.g_idx, weight.g_idx + weight.in_features)) return {};
  GptqLayout layout;
  layout.x_perm.resize(static_cast<std::size_t>(weight.in_features));
  std::iota(layout.x_perm.begin(), layout.x_perm.end(), 0);
  std::stable_sort(layout.x_perm.begin(), layout.x_perm.end(),
                   [&](std::int32_t a, std::int32_t b) { return weight.g_idx[a] < weight.g_idx[b]; });
  const auto width = static_cast<std::size_t>(weight.out_features);
  layout.qweight.resize(layout.x_perm.size() / 8 * width);
  for (std::size_t row = 0; row < layout.x_perm.size(); ++row) {
    const auto source = static_cast<std::size_t>(layout.x_perm[row]);
    const std::uint32_t* from = weight.qweight + source / 8 * width;
    std::uint32_t* to = layout.qweight.data() + row / 8 * width;
    for (std::size_t n = 0; n < width; ++n) to[n] |= (from[n] >> (4 * (source % 8)) & 0xFU) << (4 * (row % 8));
  }
  return layout;
}

}  // namespace dculab::kernels::gpu
