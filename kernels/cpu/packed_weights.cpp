#include "kernels/cpu/packed_weights.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/cpu/preconditions.hpp"
#include "kernels/number_format.hpp"

namespace dculab::kernels::cpu {
namespace {

Dtype packed_dtype(int bits) {
  require(bits == 8 || (bits >= 2 && bits <= 4), "pack_weights", "weights of 2, 3, 4 or 8 bits are supported");
  return bits == 8 ? Dtype::int8 : Dtype::int4;
}

PackedLayout layout_of(int rows, int columns, int bits, int group_size) {
  const auto check = [](bool holds, const char* what) { require(holds, "pack_weights", what); };
  check(rows > 0 && columns > 0 && columns % 8 == 0, "in-features are not a positive multiple of 8");
  check(group_size > 0 && group_size % 8 == 0, "group_size is not a positive multiple of 8");
  check(columns % group_size == 0, "group_size does not divide the in-features");
  return {rows, columns, packed_dtype(bits), group_size};
}

void check_values(const QuantizedMatrix& matrix) {
  const auto check = [](bool holds, const char* what) { require(holds, "pack_weights", what); };
  const auto rows = static_cast<std::size_t>(matrix.rows), groups = static_cast<std::size_t>(matrix.groups());
  check(matrix.q.size() == rows * static_cast<std::size_t>(matrix.columns), "q is not [rows, columns]");
  check(matrix.scales.size() == rows * groups && matrix.zeros.size() == rows * groups,
        "scales and zeros are not [rows, groups]");
  const unsigned largest = (1U << matrix.bits) - 1U;
  check(std::all_of(matrix.q.begin(), matrix.q.end(), [&](std::uint8_t q) { return q <= largest; }),
        "a value of q does not fit in its bits");
  if (matrix.g_idx.empty()) return;
  check(matrix.g_idx.size() == static_cast<std::size_t>(matrix.columns), "g_idx is not [columns]");
  std::vector<int> members(groups, 0);
  for (const std::int32_t group : matrix.g_idx) {
    check(group >= 0 && group < matrix.groups(), "g_idx names a group that does not exist");
    ++members[static_cast<std::size_t>(group)];
  }
  check(std::all_of(members.begin(), members.end(), [&](int count) { return count == matrix.group_size; }),
        "g_idx has groups of unequal size");
}

// The rows of one strip that exist, and where their values come from.
struct StripSource {
  const QuantizedMatrix& matrix;
  const std::int32_t* permutation;
  int first_row, rows;

  [[nodiscard]] std::uint8_t q(int row, int column) const {
    const int from = permutation != nullptr ? permutation[column] : column;
    return matrix.q[static_cast<std::size_t>(first_row + row) * static_cast<std::size_t>(matrix.columns) +
                    static_cast<std::size_t>(from)];
  }
  [[nodiscard]] std::size_t scale_index(int row, int group) const {
    return static_cast<std::size_t>(first_row + row) * static_cast<std::size_t>(matrix.groups()) +
           static_cast<std::size_t>(group);
  }
};

void pack_header(const PackedLayout& layout, const StripSource& from, std::byte* header) {
  for (int group = 0; group < layout.groups(); ++group, header += PackedLayout::kGroupBytes) {
    std::uint16_t scales[PackedLayout::kStripRows] = {};
    std::uint8_t zeros[PackedLayout::kStripRows] = {};
    for (int row = 0; row < from.rows; ++row) {
      scales[row] = f16_from_f32(from.matrix.scales[from.scale_index(row, group)]);
      zeros[row] = from.matrix.zeros[from.scale_index(row, group)];
    }
    std::memcpy(header, scales, sizeof scales);
    std::memcpy(header + sizeof scales, zeros, sizeof zeros);
  }
}

void pack_values(const PackedLayout& layout, const StripSource& from, std::byte* values) {
  for (int k = 0; k < layout.columns; k += layout.step(), values += PackedLayout::kStepBytes) {
    for (int row = 0; row < from.rows; ++row) {
      for (int i = 0; i < 4; ++i) {
        unsigned byte = from.q(row, k + i);
        if (layout.dtype == Dtype::int4) byte |= static_cast<unsigned>(from.q(row, k + 4 + i)) << 4;
        values[4 * row + i] = static_cast<std::byte>(byte);
      }
    }
  }
}

// The rows of one strip that exist, and where their values go.
struct StripTarget {
  QuantizedMatrix& matrix;
  const std::int32_t* permutation;
  int first_row, rows;

  [[nodiscard]] std::uint8_t& q(int row, int column) const {
    const int to = permutation != nullptr ? permutation[column] : column;
    return matrix.q[static_cast<std::size_t>(first_row + row) * static_cast<std::size_t>(matrix.columns) +
                    static_cast<std::size_t>(to)];
  }
};

void unpack_header(const PackedLayout& layout, const std::byte* header, const StripTarget& to) {
  const auto groups = static_cast<std::size_t>(layout.groups());
  for (std::size_t group = 0; group < groups; ++group, header += PackedLayout::kGroupBytes) {
    std::uint16_t scales[PackedLayout::kStripRows];
    std::memcpy(scales, header, sizeof scales);
    for (int row = 0; row < to.rows; ++row) {
      const std::size_t index = static_cast<std::size_t>(to.first_row + row) * groups + group;
      to.matrix.scales[index] = f32_from_f16(scales[row]);
      to.matrix.zeros[index] = static_cast<std::uint8_t>(header[sizeof scales + static_cast<std::size_t>(row)]);
    }
  }
}

void unpack_values(const PackedLayout& layout, const std::byte* values, const StripTarget& to) {
  for (int k = 0; k < layout.columns; k += layout.step(), values += PackedLayout::kStepBytes) {
    for (int row = 0; row < to.rows; ++row) {
      for (int i = 0; i < 4; ++i) {
        const auto byte = static_cast<unsigned>(values[4 * row + i]);
        to.q(row, k + i) = static_cast<std::uint8_t>(layout.dtype == Dtype::int4 ? byte & 0xFU : byte);
        if (layout.dtype == Dtype::int4) to.q(row, k + 4 + i) = static_cast<std::uint8_t>(byte >> 4);
      }
    }
  }
}

}  // namespace

std::size_t packed_bytes(int rows, int columns, int bits, int group_size) {
  const PackedLayout layout = layout_of(rows, columns, bits, group_size);
  return static_cast<std::size_t>(layout.strips()) * layout.strip_bytes();
}

std::vector<std::int32_t> group_order(const QuantizedMatrix& matrix) {
  if (std::is_sorted(matrix.g_idx.begin(), matrix.g_idx.end())) return {};
  std::vector<std::int32_t> order(static_cast<std::size_t>(matrix.columns));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return matrix.group(a) < matrix.group(b); });
  return order;
}

WeightView pack_weights(const QuantizedMatrix& matrix, const std::int32_t* permutation, std::byte* out) {
  const PackedLayout layout = layout_of(matrix.rows, matrix.columns, matrix.bits, matrix.group_size);
  check_values(matrix);
  require(permutation != nullptr || std::is_sorted(matrix.g_idx.begin(), matrix.g_idx.end()), "pack_weights",
          "groups that are not in order need group_order()");
  for (int strip = 0; strip < layout.strips(); ++strip, out += layout.strip_bytes()) {
    const int first = strip * PackedLayout::kStripRows;
    const StripSource from{matrix, permutation, first, std::min(PackedLayout::kStripRows, layout.rows - first)};
    std::memset(out, 0, layout.strip_bytes());
    pack_header(layout, from, out);
    pack_values(layout, from, out + layout.header_bytes());
  }
  out -= static_cast<std::size_t>(layout.strips()) * layout.strip_bytes();
  return {out, layout.dtype, layout.rows, layout.group_size, permutation};
}

QuantizedMatrix unpack_weights(const WeightView& view, int columns) {
  const int bits = view.dtype == Dtype::int8 ? 8 : 4;
  const PackedLayout layout = layout_of(view.rows, columns, bits, view.group_size);
  QuantizedMatrix matrix;
  matrix.rows = view.rows;
  matrix.columns = columns;
  matrix.bits = bits;
  matrix.group_size = view.group_size;
  const auto rows = static_cast<std::size_t>(view.rows), width = static_cast<std::size_t>(columns);
  matrix.q.resize(rows * width);
  matrix.scales.resize(rows * static_cast<std::size_t>(matrix.groups()));
  matrix.zeros.resize(matrix.scales.size());
  const auto* strip = static_cast<const std::byte*>(view.data);
  for (int first = 0; first < view.rows; first += PackedLayout::kStripRows, strip += layout.strip_bytes()) {
    const StripTarget to{matrix, view.permutation, first, std::min(PackedLayout::kStripRows, view.rows - first)};
    unpack_header(layout, strip, to);
    unpack_values(layout, strip + layout.header_bytes(), to);
  }
  if (view.permutation == nullptr) return matrix;
  matrix.g_idx.resize(width);
  for (int column = 0; column < columns; ++column)
    matrix.g_idx[static_cast<std::size_t>(view.permutation[column])] = column / view.group_size;
  return matrix;
}

}  // namespace dculab::kernels::cpu
