// Attention kernels of Hygon's DTK builds.
//
//   dtk_paged_attention          decode of flash_attn 2.8 on gfx928 and newer (vLLM plugin mode "custom"): the whole
//                                group in one workgroup, rows padded to 16, contexts split every 512 tokens, or 256
//                                where the group is above 8 or few workgroups walk:
//                                flash_fwd_launch_template_pa.h; blocks of 64
//   dtk_flash_attention          flash_attn 2.8, "varlen", the plugin's default: prefill in tiles of 128 query tokens
//                                of one head, 64 where that fills the device better; decode with the group folded into
//                                rows, split as FlashAttention 2 with pieces of 64 tokens: flash_api.cpp,
//                                mha_varlen_fwd; of several new tokens as prefill. Blocks of 64 tokens on gfx936 and
//                                gfx938, of 16 on gfx928
//   dtk_reusing_paged_attention  decode of vLLM 0.5.0 for DTK 24.04, on every DCU: 1, 2 or 4 query heads of a group in
//                                one workgroup, by how many workgroups there would be; blocks of 16, heads of 128:
//                                csrc/attention/static_switch.h of smile2game/vllm-dcu@ef41f80
//
// ALiBi: the kernel of vLLM 0.5.0 takes slopes (csrc/attention/attention_kernels.cu); whether the builds of
// flash_attn 2.8 do is not known.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::hygon {

extern const AttentionKernel kPagedAttention;
extern const AttentionKernel kFlashAttention;
extern const AttentionKernel kReusingPagedAttention;

}  // namespace dculab::lower::hygon
