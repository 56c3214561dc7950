// How many instructions do our kernels issue? They have none for matrix cores.
//
// Counted in what nvcc 13.0 makes of them for sm_90 (cuobjdump --dump-sass), per lane, where integers' dot products of
// half the rate count as two. A pair of halves is widened to F32 and multiplied by two instructions, for there is no
// dot2. `widen` is what a stored value takes: F32 0, F16 and BF16 1, E5M2 2.4, E4M3 6.4.
//
//   decode, a step of the walk     37.5 * rows (+ 44 in teams)
//                                  + members of a team * (107 + 7.25 * scores + 2 * rows * values * (heads + widen))
//           of the workgroup       1050 + 250 * heads + 130 * heads * further rounds of the merge
//   prefill, a tile                queries * keys: words / 4 * (16 * rows + 8 * (rows + 2) + 13),
//                                  weights * values: 32 * (rows * columns + rows + columns) + 72,
//                                  softmax: 90 * rows + 150
//   latents, a tile                ceil(chunks / slices) * (16 * values + 4 * values * (widen + 1) + 13)
//                                  + 16 * (2 * rows + 2 * widen + 7) + 340
//   GEMV, a step of k              4 * rows * values + rows * values of F16 + 4 * values * widen + rows + 70
//   GEMM, a slab of k              16 * (8 * rows [* 2 of halves or bytes] [+ 2 * (rows + 8) of halves]
//                                        + (rows + 8) / 4 + 8) + 64 + 8 * widen
//   GPTQ GEMV, 32 values of k      225 * rows + 430;      GEMM: 288 * rows + 503
//   absorb K, a row of w           8 * rows + 8 * widen + 14
//
// where rows, heads, columns and values are those of a lane. How near they are, and what stands beside the counts:
// docs/reference/cost-law.md.
#pragma once

#include <algorithm>

#include "core/op.hpp"
#include "lower/attention_walk.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "lower/device.hpp"
#include "lower/kernel_library.hpp"

namespace dculab::lower::dculab_gpu {

// How many waves keep a SIMD busy. Most instructions wait for the one before, so a wave alone issues one in 2.2 cycles:
// fitted to an H200, where one workgroup of decode attention on an SM takes 1.4 times as long as each of two. Too small
// by about as much as the counts above are too large (docs/reference/cost-law.md). GCN and CDNA take four cycles to
// start an instruction of a wave, and the one before is done by then.
inline constexpr double kWavesToFill = 2.2;

// Whether its compiler's output was counted.
[[nodiscard]] inline bool is_counted(const Device& device) { return is_nvidia(device); }

// Tokens, one for each group of lanes of a wave, that a wave of decode attention takes per step: as many loads of K and
// of V are under way at once (kernels/gpu/attention/paged_attention_heads.hpp).
[[nodiscard]] constexpr int paged_attention_rows(Dtype cache, const PagedAttentionTiling& tiling) {
  const int most = tiling.lane_heads * 128 / bits(cache) < kPagedAttentionLaneSums ? 4
                   : tiling.team > 1 && cache == Dtype::bf16                       ? 1
                                                                                   : 2;
  return std::min(most, tiling.token_lanes);
}

// Of the attention kernel that serves `op`, of which a workgroup has `heads` query heads or rows. Nothing of one that
// was not counted.
[[nodiscard]] IssuedWork attention_instructions(const Op& op, int heads);

// Of all workgroups of the product kernel that serves `op`; nothing issued: it was not counted. `tiles`: of rows.
[[nodiscard]] VectorProduct issued_product(const Op& op, const KernelId& kernel, double tiles);

}  // namespace dculab::lower::dculab_gpu
