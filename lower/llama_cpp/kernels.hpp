// llama.cpp's CUDA and HIP backend (ggml-org/llama.cpp, ggml/src/ggml-cuda).
//
//   llama_cpp_products         products of weights: matrix-vector up to 8 rows (mmvq.cu, MMVQ_MAX_BATCH_SIZE), beyond
//   in
//                              tiles of 64 tokens x 128 features (mmq-config-*.cuh), F16 through cuBLAS or rocBLAS
//   llama_cpp_per_head         attention without -fa: products of Q and K, row by row, one workgroup a query head and
//   256
//                              tokens; prefill in tiles of 128 tokens
//   llama_cpp_flash_attention  -fa: up to 8 query heads of a group together, contexts split so that the device is full:
//                              fattn-common.cuh, launch_fattn
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::llama_cpp {

extern const MatmulKernel kIntegerMatmul;
extern const AttentionKernel kPerHead;
extern const AttentionKernel kFlashAttention;

}  // namespace dculab::lower::llama_cpp
