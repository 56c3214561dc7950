// Vendors' products, and the matrix-vector kernels that serving programs bring for a few rows.
//
//   cublas        128 x 256, the most efficient of cuBLAS: NVIDIA, "Matrix multiplication background", section 3. On
//                 Hopper two workgroups of a cluster share what they load, as one tile of 256 x 256: CUTLASS,
//                 media/docs/efficient_gemm.md
//   rocblas       128 x 256 and smaller tiles, by slabs of k. Kernel names seen: 256x128x32 on gfx90a, 256x256x16 on
//                 gfx936 (DTK 26.04), 16x16 to 128x128 on gfx906. Slabs there have 16 to 32 values, one ahead; on CDNA
//                 32 to 128, mostly two ahead. GlobalSplitU is 1 in all lists for bytes and in nearly all of F16 for
//                 gfx906: ROCm/rocBLAS@b520bc8, library/src/blas3/Tensile/Logic/asm_full
//   rocblas_half  with sums in F16, the lists HB
//   hipblaslt     likewise; 256x224x64 at 4096^3 on gfx942 (ROCm 7.2)
//   deep_gemm     FP8 on both sides, whose sums of 128 values the vector units scale: tiles of 64 or 128 rows x 128
//                 columns on Hopper, of experts too; of more rows two workgroups of a cluster share what they load.
//                 Activations are rounded to FP8 by the kernels before, which is not priced. deepseek-ai/DeepGEMM,
//                 README.md of February 2025 (TMA multicast)
//   skinny_gemv   up to 5 rows of F16 and BF16, weights stream past once: vLLM, csrc/rocm/skinny_gemms.cu, wvSplitK;
//                 gfx90a, gfx942 and gfx950. FP8 by wvSplitKQ on gfx942 and gfx950
//
// Formats: cuBLAS documentation, cublasLtMatmul (FP8 from compute capability 8.9); rocBLAS, rocblas_gemm_ex; hipBLASLt,
// data type support (FP8 on gfx942 and gfx950). Products of int8 are of int8 on both sides; scales are applied to sums.
// hipBLASLt is not built for gfx906 and its kin gfx926 (PyTorch, aten/src/ATen/Context.cpp).
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::gemm {

// 128 rows x 256 columns of y, 256 x 256 on Hopper and gfx936, 128 x 128 on gfx906. Of int4 weights 64, Marlin's
// (lower/weight_only).
[[nodiscard]] MatmulTile library_tile(const Op& op, const Device& device);
// `tile`, halved until tiles fill three quarters of the units' time or more, down to `smallest`; else that which fills
// most.
[[nodiscard]] MatmulTile halved_tile(const Op& op, const Device& device, MatmulTile tile, MatmulTile smallest);
// The library's, halved down to 16 x 16 of y.
[[nodiscard]] MatmulTile filling_tile(const Op& op, const Device& device);
[[nodiscard]] Slabs tensile_slabs(const Device& device);
// No solution of the tuned lists for integers splits, and of gfx906's for F16 hardly one.
[[nodiscard]] int tensile_parts(const Op& op, const Device& device);
[[nodiscard]] int one_row(const Device& device);

// By matrix cores of NVIDIA's, from compute capability 8.9, or of gfx938, gfx942 and gfx950.
[[nodiscard]] bool multiplies_fp8(const Device& device);

extern const MatmulKernel kCublas;
extern const MatmulKernel kRocblas;
extern const MatmulKernel kRocblasHalf;
extern const MatmulKernel kHipblaslt;
extern const MatmulKernel kDeepGemm;
extern const MatmulKernel kSkinnyGemv;

}  // namespace dculab::lower::gemm
