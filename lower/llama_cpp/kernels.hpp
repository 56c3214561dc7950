// llama.cpp's CUDA and HIP backend (ggml-org/llama.cpp, ggml/src/ggml-cuda).
//
//   llama_cpp_products         products of weights: matrix-vector up to 8 rows (mmvq.cu, MMVQ_MAX_BATCH_SIZE), beyond
//                              that tiles of 64 tokens x 128 features (mmq-config-*.cuh), F16 through cuBLAS or
//                              rocBLAS
//   llama_cpp_quantized        the same products with the tile that the stacks are priced with: cuBLAS's, which the
//                              backend of 2024 calls with widened weights, and Marlin's for int4. Both take GGUF's
//                              formats; those of 2 to 6 bits are priced as int2, int3, int4 or int8
//   llama_cpp_per_head         attention without -fa: products of Q and K, row by row, one workgroup a query head and
//                              256 tokens; prefill in tiles of 128 tokens
//   llama_cpp_experts          products of all experts (mmq.cu with ids). The tile is the smallest of those that need
//                              the fewest tiles if all tokens went to one expert, so 16 rows of an expert are padded
//                              to 64 where there are 512 tokens; a tile has 256 values of k in LDS. Up to 8 tokens of a
//                              step are matrix-vector products of each expert (mmvq.cu, get_mmvq_mmid_max_batch: 4 to 8
//                              by format and device, 8 where it says nothing)
//   llama_cpp_flash_attention  -fa: up to 8 query heads of a group together, contexts split so that the device is full:
//                              fattn-common.cuh, launch_fattn
//
// ALiBi: ggml_soft_max_ext and the flash kernels take max_bias.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::llama_cpp {

extern const MatmulKernel kIntegerMatmul;
extern const MatmulKernel kQuantizedMatmul;
extern const ExpertKernel kExperts;
extern const AttentionKernel kPerHead;
extern const AttentionKernel kFlashAttention;

}  // namespace dculab::lower::llama_cpp
