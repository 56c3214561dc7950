// A part of one matrix or vector of weights, copied as the kernels take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// Rows and columns of the whole that the part has. Rows beyond the whole's last are zeros: of a vocabulary that does
// not divide. A vector has one column.
struct WeightCut {
  int first_row = 0, rows = 0;
  int first_column = 0, columns = 0;
  int whole_rows = 0, whole_columns = 0;

  [[nodiscard]] bool cuts_columns() const { return columns != whole_columns; }
  // Of the rows, those that the whole has.
  [[nodiscard]] int filled_rows() const {
    const int left = whole_rows - first_row;
    return left < 0 ? 0 : left < rows ? left : rows;
  }
};

// What outlives the views into a part: orders of in-features and scales of FP8 blocks.
struct CutMemory {
  std::vector<std::unique_ptr<const std::vector<std::int32_t>>> permutations;
  std::vector<std::unique_ptr<const std::vector<float>>> scales;
};

// Bytes that the part takes.
[[nodiscard]] std::size_t room_for(const kernels::WeightView& whole, const WeightCut& cut);

// Writes room_for() bytes to `out`, which lies on a cache line, and shows them. Throws InputError, naming `name`, where
// the columns are no whole groups or blocks.
[[nodiscard]] kernels::WeightView copy_part(const kernels::WeightView& whole, const WeightCut& cut,
                                            const std::string& name, std::byte* out, CutMemory& memory);

}  // namespace dculab::engine
