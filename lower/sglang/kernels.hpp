// SGLang's Triton attention (python/sglang/srt/layers/attention/triton_ops; sgl-project/sglang 0.5.12).
//
//   sglang_triton_decode  up to 16 query heads of a group in one program, contexts split into at most 8 parts (16 on
//                         AMD), so that the programs fill the cores: decode_attention.py, get_num_kv_splits_triton;
//                         MLA's latents too
//   sglang_triton_extend  prefill, 64 query tokens of one head a program (128 on NVIDIA, heads up to 128):
//                         extend_attention.py
//
// Neither takes ALiBi's slopes, and SGLang passes none to any other kernel.
//
// Its products of FP8 weights, whose activations a kernel before rounds to FP8:
//
//   sglang_block_fp8      scales of blocks of 128 x 128: _w8a8_block_fp8_matmul of layers/quantization/fp8_kernel.py,
//                         64 rows x 128 columns by slabs of 128 where no file was tuned for a shape (num_stages 3);
//                         CUTLASS's, 128 x 128, with more rows. Neither splits k. The profile of DeepSeek-V4-Flash on
//                         H20 has both (ZhangFanYi/ZhangFanYi.github.io@864e03d3, 07-deepseek-v4-flash)
//   sglang_channel_fp8    DTK, a scale for each row of weights and of activations: hipBLASLt's Cijk_..._Squant in the
//                         same profile on BW1101, whose instructions multiply FP8
//                         (qhy991/open-cake-ir@0970a36, compiler/targets/gfx938.json)
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::sglang {

extern const AttentionKernel kTritonDecode;
extern const AttentionKernel kTritonExtend;
extern const MatmulKernel kBlockFp8;
extern const MatmulKernel kChannelFp8;

}  // namespace dculab::lower::sglang
