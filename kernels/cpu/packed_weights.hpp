// Quantized weights in the order in which the CPU kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ops.hpp"
#include "kernels/quantized_matrix.hpp"

namespace dculab::kernels::cpu {

// Strips of 16 rows (out-features) one after the other, the last filled up with zeros. A strip is
//   for each group:   F16 scales[16], u8 zeros[16]; then up to the next multiple of 64 bytes nothing
//   int4: for each 8 in-features k: 64 bytes, byte 4 r + i = q[r, k + i] | q[r, k + 4 + i] << 4, r < 16, i < 4
//   int8: for each 4 in-features k: 64 bytes, byte 4 r + i = q[r, k + i]
struct PackedLayout {
  static constexpr int kStripRows = 16;
  static constexpr int kGroupBytes = 48;
  static constexpr int kStepBytes = 64;

  int rows = 0, columns = 0;
  Dtype dtype = Dtype::int4;  // or int8
  int group_size = 0;

  [[nodiscard]] constexpr int strips() const { return (rows + kStripRows - 1) / kStripRows; }
  [[nodiscard]] constexpr int groups() const { return columns / group_size; }
  [[nodiscard]] constexpr int step() const { return dtype == Dtype::int4 ? 8 : 4; }  // in-features in kStepBytes
  [[nodiscard]] constexpr std::size_t header_bytes() const {
    return (static_cast<std::size_t>(groups()) * kGroupBytes + 63) / 64 * 64;
  }
  [[nodiscard]] constexpr std::size_t strip_bytes() const {
    return header_bytes() + static_cast<std::size_t>(columns / step()) * kStepBytes;
  }
};

// Bytes of the packed form of [rows, columns] weights. 2 to 4 bits are packed as int4, 8 as int8.
[[nodiscard]] std::size_t packed_bytes(int rows, int columns, int bits, int group_size);

// Where in-features go: column c of the packed form holds in-feature permutation[c], so that groups are consecutive.
// Empty when the matrix has its groups in order already.
[[nodiscard]] std::vector<std::int32_t> group_order(const QuantizedMatrix& matrix);

// Writes packed_bytes() bytes to `out`, which lies on a 64-byte boundary. `permutation` is group_order(matrix), kept by
// the caller for as long as the view. Throws std::invalid_argument for shapes that the kernels do not serve: columns or
// a group_size that are not multiples of 8, groups of unequal size.
[[nodiscard]] WeightView pack_weights(const QuantizedMatrix& matrix, const std::int32_t* permutation, std::byte* out);

// The way back: the matrix of `columns` in-features that `view` shows, in 4 or 8 bits.
[[nodiscard]] QuantizedMatrix unpack_weights(const WeightView& view, int columns);

}  // namespace dculab::kernels::cpu
