// What a kivi4 or kivi2 cache does on the CPU before and after attention. Arguments and shapes: kernels/kv/kivi.hpp.
#pragma once

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/kv/kivi.hpp"

namespace dculab::kernels::cpu {

// head_dim must be a multiple of 32.
void quantize_groups(ThreadPool& threads, Workspace& workspace, const KiviArgs& args);
void keep_residual(ThreadPool& threads, const KiviArgs& args);

}  // namespace dculab::kernels::cpu
