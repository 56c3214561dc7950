// vLLM's own attention kernels. Facts: vllm-project/vllm at 0.23.1rc0 and ROCm/vllm 0.9.2 to 0.10, files beside each.
//
//   vllm_paged_attention         decode, one query head a workgroup, contexts split every 512 tokens while sequences x
//                                heads are at most 512: csrc/attention/paged_attention_v1.cu and _v2.cu,
//                                vllm/attention/ops/paged_attn.py
//   vllm_rocm_paged_attention    decode, the whole group in one workgroup, split every 256 tokens, always combined:
//                                csrc/rocm/attention.cu; vllm/platforms/rocm.py, use_rocm_custom_paged_attention. A
//                                partition's entries of the block table are loaded at once
//   triton_unified_attention_3d  decode of at most 128 / KV heads sequences: 16 segments of each context, in tiles of
//                                16 tokens, 16 rows of queries (more where the group is larger)
//   triton_unified_attention_2d  prefill, and decode of more sequences: 16 rows of (token, head of the group) a
//                                program, which walks the whole context in tiles of 32 tokens; both:
//                                vllm/v1/attention/ops/triton_unified_attention.py. One load of entries for each tile.
//                                Registers and LDS follow from rows and tile
//
// All take ALiBi's slopes: alibi_slopes of each, in Triton USE_ALIBI_SLOPES.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::vllm {

extern const AttentionKernel kPagedAttention;
extern const AttentionKernel kRocmPagedAttention;
extern const AttentionKernel kTritonUnified3d;
extern const AttentionKernel kTritonUnified2d;

}  // namespace dculab::lower::vllm
