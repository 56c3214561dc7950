// Vendors' products, and the matrix-vector kernels that serving programs bring for a few rows.
//
//   cublas        128 x 256, the most efficient of cuBLAS: NVIDIA, "Matrix multiplication background", section 3. On
//                 Hopper two workgroups of a cluster share what they load, as one tile of 256 x 256: CUTLASS,
//                 media/docs/efficient_gemm.md
//   rocblas       128 x 256 as well. Kernel names seen: 256x128x32 on gfx90a, 256x256x16 on gfx936 (DTK 26.04), up to
//                 128 x 128 on gfx906 (ROCm/rocBLAS@40c16e0, Tensile/Logic/asm_full): one tile stands for all
//   hipblaslt     likewise; 256x224x64 at 4096^3 on gfx942 (ROCm 7.2)
//   skinny_gemv   up to 5 rows of F16 and BF16, weights stream past once: vLLM, csrc/rocm/skinny_gemms.cu, wvSplitK;
//                 gfx90a, gfx942 and gfx950
//
// Int4 weights are multiplied in tiles of at most 64 rows, as Marlin's and ExLlama's kernels are.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::gemm {

extern const MatmulKernel kCublas;
extern const MatmulKernel kRocblas;
extern const MatmulKernel kHipblaslt;
extern const MatmulKernel kSkinnyGemv;

}  // namespace dculab::lower::gemm
