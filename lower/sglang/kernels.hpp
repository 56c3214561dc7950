// SGLang's Triton attention (python/sglang/srt/layers/attention/triton_ops; sgl-project/sglang 0.5.12).
//
//   sglang_triton_decode  up to 16 query heads of a group in one program, contexts split into at most 8 parts (16 on
//                         AMD), so that the programs fill the cores: decode_attention.py, get_num_kv_splits_triton;
//                         MLA's latents too
//   sglang_triton_extend  prefill, 64 query tokens of one head a program (128 on NVIDIA, heads up to 128):
//                         extend_attention.py
//
// Neither takes ALiBi's slopes, and SGLang passes none to any other kernel.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::sglang {

extern const AttentionKernel kTritonDecode;
extern const AttentionKernel kTritonExtend;

}  // namespace dculab::lower::sglang
