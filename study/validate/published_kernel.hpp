// The kernel that a published point names, with its parameters: "triton_unified_attention_3d block_m=16".
#pragma once

#include <string>

#include "sim/hardware/stack.hpp"

namespace dculab::study {

// Puts it into `stack` in place of those that do the same. Names are those of stack files; `tile` is `tile_size`, and
// parameters that are not named are standard. Throws InputError for a kernel, a parameter or a value that the kernel
// libraries do not have.
void run_kernel(sim::Stack& stack, const std::string& kernel);

}  // namespace dculab::study
