// The product with packed weights, as matmul() calls it.
#pragma once

#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::kernels::cpu {

// Precondition: all weights are int8 or int4 as pack_weights left them. Throws std::invalid_argument where they do not
// fit together.
void quantized_matmul(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args);

}  // namespace dculab::kernels::cpu
