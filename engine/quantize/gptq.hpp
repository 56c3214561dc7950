// GPTQ: rounds column after column, and moves what rounding got wrong into the columns that are still to come, as the
// Hessian of the layer's squared output error asks. Source: Frantar et al., arXiv:2210.17323, algorithm 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/quantize/round_to_nearest.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace dculab::engine {

enum class ColumnOrder : std::uint8_t {
  as_stored,
  by_activation,  // act-order, desc_act: in-features with the largest diagonal of the Hessian first
};

// U of H^-1 = U^T U, which says how an error in one column is best made up for in the later ones.
struct InverseFactor {
  int columns = 0;
  std::vector<std::int32_t> order;  // [columns] the in-feature at each place
  std::vector<float> upper;         // [columns, columns], rows and columns in that order
  int dead_columns = 0;             // in-features that were 0 in all of the calibration text
};

// `hessian` [columns, columns] is 2/N sum x x^T. damp * mean(diagonal) is added to its diagonal; a dead in-feature,
// about which the text says nothing, takes and gives no corrections. Throws InputError when it is singular all the
// same.
[[nodiscard]] InverseFactor factor_inverse(std::span<const float> hessian, int columns, ColumnOrder order, double damp);

// Columns are worked on in blocks of 128, whose corrections reach the rest at once. Grids are found when the block that
// their group begins in is reached, from weights that carry the corrections of the blocks before, as in the authors'
// program: with 2 and 3 bits, corrections within the block only widen them. Rows are dealt out to the threads; results
// do not depend on their number. Precondition: group_size divides the columns.
[[nodiscard]] kernels::QuantizedMatrix gptq(kernels::cpu::ThreadPool& threads, const WeightMatrix& weights,
                                            const InverseFactor& factor, const GridOptions& grid, int group_size);

}  // namespace dculab::engine
