// What a kernel is called, from its address.
#pragma once

#include <string>

namespace dculab::kernels::gpu::host {

// "rms_norm_kernel<64>": as the compiler writes it, without namespaces; the name that
// lower/dculab_gpu/compiled_kernels.csv has for the same kernel on a GPU. Empty when the program does not export its
// symbols (-rdynamic).
[[nodiscard]] std::string kernel_symbol(const void* kernel);

}  // namespace dculab::kernels::gpu::host
