// AITER's attention and products (ROCm/aiter@e404860) on gfx942 and gfx950.
//
//   aiter_paged_attention  decode, the whole group in one workgroup, split every 256 tokens: csrc/cpp_itfs/pa
//   aiter_flash_attention  prefill, 256 query tokens of one head: hsa/gfx942/fmha_v3_fwd, ts_qo
//
//   aiter_products         FP8 with a scale for each 128 of k, int8: 128 x 128 tiles, for few rows down to 16 x 64,
//                          256 bytes of k at a time, not split: aiter/configs/model_configs/a8w8_blockscale_tuned_*.csv
//
// ALiBi: the paged kernel takes slopes (pa.cuh), the prefill kernel none (aiter/ops/mha.py, can_impl_fmha_v3_fwd).
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::aiter {

extern const MatmulKernel kProducts;
extern const AttentionKernel kPagedAttention;
extern const AttentionKernel kFlashAttention;

}  // namespace dculab::lower::aiter
