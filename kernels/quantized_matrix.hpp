// A quantized weight matrix in its plain form, one integer a byte: what quantizers make, checkpoints are read into and
// written from, and the CPU and GPU kernels' own layouts are packed from.
//
//   weight[n, k] = scales[n, group(k)] * (q[n, k] - zeros[n, group(k)])
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dculab::kernels {

struct QuantizedMatrix {
  int rows = 0;     // out_features
  int columns = 0;  // in_features
  int bits = 4;     // 2, 3, 4 or 8: q and zeros lie in [0, 2^bits)
  // In-features that share a scale; it divides columns. The groups are consecutive in-features unless g_idx says
  // otherwise.
  int group_size = 128;
  std::vector<std::uint8_t> q;      // [rows, columns]
  std::vector<float> scales;        // [rows, groups], each a number that F16 holds
  std::vector<std::uint8_t> zeros;  // [rows, groups]
  std::vector<std::int32_t> g_idx;  // [columns], the group of each in-feature (act-order); empty: column / group_size

  [[nodiscard]] int groups() const { return columns / group_size; }
  [[nodiscard]] int group(int column) const {
    return g_idx.empty() ? column / group_size : g_idx[static_cast<std::size_t>(column)];
  }
};

// ActivationMode::int8 gives each token one scale for this many in-features, counted in the order of the groups: the
// largest divisor of group_size that is a multiple of 8 and at most 128, so that an outlier spoils few of its
// neighbours even where a group is a whole row. x becomes round(x * (127 / largest)), ties to even, and stands for that
// times largest / 127, all in F32; largest is the largest |x| of them, and below 2^-100 they are zeros.
[[nodiscard]] constexpr int activation_group_size(int group_size) {
  int size = group_size < 128 ? group_size : 128;
  while (size > 8 && (group_size % size != 0 || size % 8 != 0)) --size;
  return size;
}
inline constexpr float kSmallestActivation = 0x1p-100F;

}  // namespace dculab::kernels
