// Paged attention, and H2O's pass over the keys.
//
// Where no kernel of ours is compiled for the device, a workgroup asks for
//   decode   registers 40 + 2 * heads * head_dim / wave_size    (accumulators and queries of the heads it serves)
//            LDS       heads * (64 scores in F32 + a query)
//   prefill  registers 64 + tokens * head_dim / threads         (accumulators of a query tile)
//            LDS       a tile of K and one of V, 64 tokens each
// so that a larger group costs registers and LDS, hence workgroups in flight: assumptions about kernels like vLLM's.
//
// Each value of K and V is converted once per workgroup that loads it. Matrix cores pad rows to tiles of 16; on NVIDIA
// to 64, whatever the group: FlashAttention's kBlockM, which is the wgmma instruction's own
// (csrc/flash_attn/src/flash_fwd_launch_template.h, run_mha_fwd_splitkv_dispatch; hopper/tile_size.h). A score costs
// about 10 instructions: scale, maximum, subtraction, exponential, sum (measured exponentials of vectorised math
// libraries are 6 to 10).
//
// On a CPU a tile of 64 tokens is widened once for the whole group, K transposed (log2 of 16 lanes: 4 shuffles), and
// both stored; blocks shorter than the tile are gathered run by run. On AVX-512 up to 8 query rows do without storing
// and gathering: the attention_compute of a calibration takes that up. A tile is multiplied with all queries that see
// any of it.
#pragma once

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/device.hpp"
#include "lower/kernel_library.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

inline constexpr double kCpuLanes = 16;  // of the vectors in which instructions of CPUs are counted

// Fills in a launch that asks for each byte once.
void lower_attention(const Op& op, const StepPlan& step, const AttentionKernel& kernel, const Device& device,
                     const ParameterChoices& chosen, Launch& launch);

}  // namespace dculab::lower
