// Decode attention over MLA's latents: all query heads of a sequence share one KV head, whose values are the first part
// of its keys. A workgroup loads a tile of latents once and multiplies it twice.
//
//   triton_mla  16 query heads a program, contexts in 4 parts, tiles of 32 latents (16 on AMD, whose LDS is smaller):
//               vLLM 0.23, v1/attention/ops/triton_decode_attention.py, _decode_grouped_att_m_fwd;
//               v1/attention/backends/mla/triton_mla.py, num_kv_splits
//   flash_mla   Hopper: 64 query heads a block, pages of 64 latents, and as many parts of the contexts as fill the
//               device: deepseek-ai/FlashMLA, csrc/get_mla_metadata.cu
//   flash_mla_sparse  Hopper, DeepSeek-V4's window and entries: 64 query heads of one token, which gathers what it has
//               chosen, 64 at a time: deepseek-ai/FlashMLA, csrc/sm90/prefill/sparse; decode cuts contexts as above
//   dtk_flash_mla_sparse  the same on gfx936 and gfx938, in whose traces it has the same names, the sum of parts too
//               (ZhangFanYi/ZhangFanYi.github.io@864e03d3, 07-deepseek-v4-flash); the tiles of Hopper's stand for its
//
// SGLang pads a device's query heads to all 64 of the model (srt/models/deepseek_v4.py, q_padded).
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::latent_attention {

extern const AttentionKernel kTritonMla;
extern const AttentionKernel kFlashMla;
extern const AttentionKernel kFlashMlaSparse;
extern const AttentionKernel kDtkFlashMlaSparse;

}  // namespace dculab::lower::latent_attention
