// Random quantized matrices, whose weights have a standard deviation of at most about 1.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/cpu/packed_weights.hpp"
#include "kernels/number_format.hpp"
#include "kernels/quantized_matrix.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {

enum class GroupOrder : std::uint8_t { consecutive, act_order };

struct QuantizedSizes {
  int rows = 0, columns = 0, bits = 4, group_size = 128;
};

inline QuantizedMatrix random_quantized(TensorSource& source, const QuantizedSizes& sizes,
                                        GroupOrder order = GroupOrder::consecutive) {
  QuantizedMatrix matrix{sizes.rows, sizes.columns, sizes.bits, sizes.group_size, {}, {}, {}, {}};
  const auto rows = static_cast<std::size_t>(sizes.rows), groups = static_cast<std::size_t>(matrix.groups());
  const int largest = (1 << sizes.bits) - 1;
  matrix.q.resize(rows * static_cast<std::size_t>(sizes.columns));
  for (std::uint8_t& q : matrix.q) q = static_cast<std::uint8_t>(source.integer(0, largest));
  const float step = 3.46F / static_cast<float>(largest + 1);  // the deviation of uniform numbers is 1 / sqrt(12)
  for (std::size_t i = 0; i < rows * groups; ++i) {
    const float scale = step * (0.5F + 0.005F * static_cast<float>(source.integer(0, 100)));
    matrix.scales.push_back(f32_from_f16(f16_from_f32(source.integer(0, 7) == 0 ? -scale : scale)));
    matrix.zeros.push_back(static_cast<std::uint8_t>(source.integer(3 * largest / 8, 5 * largest / 8 + 1)));
  }
  if (order == GroupOrder::act_order) {
    for (int k = 0; k < sizes.columns; ++k) matrix.g_idx.push_back(k / sizes.group_size);
    std::shuffle(matrix.g_idx.begin(), matrix.g_idx.end(), source.engine());
  }
  return matrix;
}

// The packed form and what it points to.
class PackedMatrix {
 public:
  explicit PackedMatrix(const QuantizedMatrix& matrix)
      : order_(cpu::group_order(matrix)),
        storage_(cpu::packed_bytes(matrix.rows, matrix.columns, matrix.bits, matrix.group_size) + 64) {
    std::byte* begin = storage_.data();
    while (reinterpret_cast<std::uintptr_t>(begin) % 64 != 0) ++begin;
    view_ = cpu::pack_weights(matrix, order_.empty() ? nullptr : order_.data(), begin);
  }
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  [[nodiscard]] const WeightView& view() const { return view_; }

 private:
  std::vector<std::int32_t> order_;
  std::vector<std::byte> storage_;
  WeightView view_;
};

}  // namespace dculab::kernels
