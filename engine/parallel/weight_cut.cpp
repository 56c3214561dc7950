#include "engine/parallel/weight_cut.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "kernels/cpu/packed_weights.hpp"

namespace dculab::engine {
namespace {

using kernels::WeightView;
using kernels::cpu::PackedLayout;

[[nodiscard]] bool is_packed(const WeightView& view) { return view.group_size > 0; }

void require_cut(bool holds, const std::string& name, const std::string& why) {
  if (!holds) throw InputError("'" + name + "' cannot be divided among the ranks: " + why);
}

// Where a row is one group, so is its part: the scale goes for both.
[[nodiscard]] int group_of_part(const WeightView& whole, const WeightCut& cut) {
  return whole.group_size == cut.whole_columns ? cut.columns : whole.group_size;
}

[[nodiscard]] PackedLayout layout_of_part(const WeightView& whole, const WeightCut& cut) {
  return {cut.rows, cut.columns, whole.dtype, group_of_part(whole, cut)};
}

void copy_plain(const WeightView& whole, const WeightCut& cut, std::byte* out) {
  const auto value = static_cast<std::size_t>(bits(whole.dtype)) / 8;
  const std::size_t run = static_cast<std::size_t>(cut.columns) * value;
  const std::size_t stride = static_cast<std::size_t>(cut.whole_columns) * value;
  const auto* from = static_cast<const std::byte*>(whole.data) + static_cast<std::size_t>(cut.first_row) * stride +
                     static_cast<std::size_t>(cut.first_column) * value;
  const auto filled = static_cast<std::size_t>(cut.filled_rows());
  if (!cut.cuts_columns()) {
    if (filled > 0) std::memcpy(out, from, filled * run);
    return;
  }
  for (std::size_t row = 0; row < filled; ++row) std::memcpy(out + row * run, from + row * stride, run);
}

// Of a strip the headers and steps of whole groups.
void copy_strips(const WeightView& whole, const WeightCut& cut, std::byte* out) {
  const PackedLayout from{cut.whole_rows, cut.whole_columns, whole.dtype, whole.group_size};
  const PackedLayout to = layout_of_part(whole, cut);
  const auto first_group = static_cast<std::size_t>(cut.first_column / whole.group_size);  // 0 where there is one
  const auto first_step = static_cast<std::size_t>(cut.first_column / from.step());
  const auto* strip = static_cast<const std::byte*>(whole.data) +
                      static_cast<std::size_t>(cut.first_row / PackedLayout::kStripRows) * from.strip_bytes();
  for (int index = 0; index < to.strips(); ++index, strip += from.strip_bytes(), out += to.strip_bytes()) {
    std::memcpy(out, strip + first_group * PackedLayout::kGroupBytes,
                static_cast<std::size_t>(to.groups()) * PackedLayout::kGroupBytes);
    std::memcpy(out + to.header_bytes(), strip + from.header_bytes() + first_step * PackedLayout::kStepBytes,
                static_cast<std::size_t>(to.columns / to.step()) * PackedLayout::kStepBytes);
  }
}

// Rows that begin within a strip are packed anew.
[[nodiscard]] WeightView repack_rows(const WeightView& whole, const WeightCut& cut, const std::int32_t* permutation,
                                     std::byte* out) {
  kernels::QuantizedMatrix matrix = kernels::cpu::unpack_weights(whole, cut.whole_columns);
  const auto keep = [&cut](auto& values, int width) {
    const auto first = values.begin() + std::ptrdiff_t{cut.first_row} * width;
    values = {first, first + std::ptrdiff_t{cut.rows} * width};
  };
  keep(matrix.q, matrix.columns);
  keep(matrix.scales, matrix.groups());
  keep(matrix.zeros, matrix.groups());
  matrix.rows = cut.rows;
  return kernels::cpu::pack_weights(matrix, permutation, out);
}

[[nodiscard]] const std::int32_t* kept_permutation(const WeightView& whole, int columns, CutMemory& memory) {
  if (whole.permutation == nullptr) return nullptr;
  const std::vector<std::int32_t> order(whole.permutation, whole.permutation + columns);
  for (const auto& known : memory.permutations)
    if (*known == order) return known->data();
  memory.permutations.push_back(std::make_unique<const std::vector<std::int32_t>>(order));
  return memory.permutations.back()->data();
}

[[nodiscard]] WeightView copy_packed(const WeightView& whole, const WeightCut& cut, const std::string& name,
                                     std::byte* out, CutMemory& memory) {
  constexpr int kStrip = PackedLayout::kStripRows;
  require_cut(cut.filled_rows() == cut.rows, name, "its rows do not divide");
  if (cut.cuts_columns()) {
    require_cut(whole.permutation == nullptr, name,
                "its groups have in-features from everywhere (act-order); quantize the model without desc_act");
    const int group = group_of_part(whole, cut);
    require_cut(cut.first_column % group == 0 && cut.columns % group == 0 && cut.columns % 8 == 0, name,
                std::to_string(cut.columns) + " in-features are no whole groups of " + std::to_string(group));
  }
  const std::int32_t* const permutation = kept_permutation(whole, cut.whole_columns, memory);
  const bool whole_strips =
      cut.first_row % kStrip == 0 && (cut.rows % kStrip == 0 || cut.first_row + cut.rows == cut.whole_rows);
  if (!whole_strips) {
    require_cut(!cut.cuts_columns(), name, "its rows and columns are cut");
    return repack_rows(whole, cut, permutation, out);
  }
  copy_strips(whole, cut, out);
  WeightView part = whole;
  part.data = out, part.rows = cut.rows, part.group_size = group_of_part(whole, cut);
  part.permutation = permutation;
  return part;
}

// Scales go by rows once blocks need not begin where the part does.
[[nodiscard]] kernels::Fp8Scales cut_scales(const kernels::Fp8Scales& whole, const WeightCut& cut,
                                            const std::string& name, CutMemory& memory) {
  const auto block_of = [&whole](int column) { return column >> whole.column_shift; };
  const bool begins_block =
      whole.column_shift == kernels::Fp8Scales::kAll || cut.first_column % (1 << whole.column_shift) == 0;
  require_cut(begins_block, name, "its columns are no whole blocks of FP8 scales");
  const int first = block_of(cut.first_column), blocks = block_of(cut.first_column + cut.columns - 1) - first + 1;
  auto scales = std::make_unique<std::vector<float>>();
  for (int row = 0; row < cut.rows; ++row) {
    const float* const from = whole.of_row(cut.first_row + row) + first;
    scales->insert(scales->end(), from, from + blocks);
  }
  memory.scales.push_back(std::move(scales));
  return {memory.scales.back()->data(), 0, whole.column_shift, blocks};
}

}  // namespace

std::size_t room_for(const WeightView& whole, const WeightCut& cut) {
  if (whole.data == nullptr) return 0;
  if (is_packed(whole))
    return kernels::cpu::packed_bytes(cut.rows, cut.columns, bits(whole.dtype), group_of_part(whole, cut));
  return static_cast<std::size_t>(cut.rows) * static_cast<std::size_t>(cut.columns) *
         static_cast<std::size_t>(bits(whole.dtype)) / 8;
}

WeightView copy_part(const WeightView& whole, const WeightCut& cut, const std::string& name, std::byte* out,
                     CutMemory& memory) {
  if (whole.data == nullptr) return {};
  if (is_packed(whole)) return copy_packed(whole, cut, name, out, memory);
  copy_plain(whole, cut, out);
  WeightView part = whole;
  part.data = out, part.rows = cut.rows;
  if (whole.dtype == Dtype::fp8_e4m3) part.scales = cut_scales(whole.scales, cut, name, memory);
  return part;
}

}  // namespace dculab::engine
