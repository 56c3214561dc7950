// What our engine sets aside on a CPU for K and V that latents expand to: some heads of some sequences at a time, in
// F32, and the piece that a product gives.
#pragma once

#include "core/units.hpp"
#include "model/model_shape.hpp"

namespace dculab::lower::dculab_cpu {

inline constexpr Bytes kMostExpanded{64.0 * (1 << 20)};  // more where the fewest heads of one sequence have more
inline constexpr int kExpandedBlockTokens = 64;
inline constexpr int kExpandedPieceTokens = 256;  // that a product expands
inline constexpr int kExpandedStripRows = 16;     // of packed weights, which can only be used together

// At most, of a model with latents; of another nothing.
[[nodiscard]] Bytes expanded_memory(const ModelShape& shape, Bytes most = kMostExpanded);

// The fewest heads whose rows of kv_b_proj can be used alone, where `inseparable_rows` rows go together.
[[nodiscard]] int fewest_heads(int num_heads, int rows_of_head, int inseparable_rows);

}  // namespace dculab::lower::dculab_cpu
