// The recurrence of gated delta nets.
//
//   decode   a program for each sequence, value head and 8 columns of its state, which reads the state, takes in one
//            token and writes it: fused_recurrent_gated_delta_rule
//   prefill  chunks of 64 tokens, multiplied by matrix instructions in six kernels that hand on through memory: for
//   each
//            token and value head a row of the chunk's 64 x 64 factors, in F32 and inverted in 16 bits; what the chunk
//            writes and what it takes from the state (as long as a key, twice as long as a value); for each chunk a
//            state
//
// Source: flash-linear-attention, fla/ops/gated_delta_rule/{fused_recurrent,chunk}.py; vLLM has the same kernels.
#pragma once

#include "core/op.hpp"
#include "lower/device.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// Fills in a launch that asks for each byte once.
void lower_delta_rule(const Op& op, const Device& device, Launch& launch);

}  // namespace dculab::lower
