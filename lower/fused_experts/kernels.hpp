// Products of all experts in one launch, by Triton: tokens are sorted by expert, each expert's rows padded to tiles
// (moe_align_block_size), and a workgroup multiplies one tile by columns of its expert's weights. The same kernel does
// gate and up, and then down; an activation between them and a sum over a token's experts are kernels of their own.
//
//   vllm_fused_experts           vLLM's and SGLang's fused_moe_kernel with the tiles of their tuned files. Here they
//                                are those of 8 experts on H100 and MI300X:
//                                vllm/model_executor/layers/fused_moe/configs of vllm-project/vllm@02ba322d and
//                                @02f479a7
//   vllm_fused_experts_default   the same where no file was tuned for the device (get_default_config of fused_moe.py,
//                                vllm-project/vllm@000d1458): 16 x 32, with more tokens than experts 64 x 64
//   vllm_fused_experts_by_value  vLLM 0.6.2 on DTK, the same tiles. Its Triton starts no load before the last slab is
//                                multiplied, and loads value by value: what Triton 3.0 makes of the kernel for gfx90a
//                                where it cannot tell that neighbours are masked alike, 8.4 to 8.8 vector, LDS and
//                                memory instructions of a lane for each value of a slab. That DTK's does so is taken
//                                from its times, 380 ns a slab of 16 x 32 and 520 of 64 x 64 on each unit of BW1000,
//                                the same for each value (flagos-ai/FlagGems-vllm pull request 797). It sorts
//                                by loops over the experts, in each of which a load waits for the store before it
//                                (moe_align_block_size_stage2 and _stage3 in Triton). Of fewer than 224 experts it
//                                sorts in the LDS of one workgroup instead (csrc/moe_align_block_size_kernels.cu of
//                                vllm-project/vllm@0bb745fd, moe_align_block_size of fused_moe.py)
//   flaggems_fused_experts       FlagGems' own for int4 on DCUs, which widens a weight in each workgroup that needs it:
//                                src/flaggems_vllm/runtime/backend/_hygon/fused/fused_marlin_moe.py of
//                                flagos-ai/FlagGems-vllm@7a44b285. Triton 3.9 makes 13.1 to 14.2 instructions a weight
//                                of it for gfx90a with 16 rows, 18.6 to 19.1 with 32, 15.8 to 16.7 with 64, all else
//                                included
//
// Of today's Triton 3.9 the same count of fused_moe_kernel is 1.5 to 2.1 a value, for gfx90a and gfx942, tiles from
// 16 x 32 to 128 x 128; for NVIDIA, which copies slabs ahead without registers, none was counted.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::fused_experts {

extern const ExpertKernel kTuned;
extern const ExpertKernel kDefault;
extern const ExpertKernel kByValue;
extern const ExpertKernel kFlagGemsWidening;

}  // namespace dculab::lower::fused_experts
