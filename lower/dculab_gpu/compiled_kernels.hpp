// What our own GPU kernels ask of a compute unit, as the compiler built them: compiled_kernels.csv, which
// `cmake --build --preset hip --target kernel_resources` reads from the code objects of hipcc.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/occupancy.hpp"

namespace dculab::lower::dculab_gpu {

struct CompiledKernel {
  std::string_view target;  // "gfx906"
  std::string_view name;    // with its template arguments: "rms_norm_kernel<64>"
  KernelResources resources;
};

// By target, then name.
[[nodiscard]] std::span<const CompiledKernel> compiled_kernels();

// By target and full name.
[[nodiscard]] std::optional<KernelResources> find_compiled_kernel(std::string_view target, std::string_view name);

// None where the table has no such target, or it no such kernel.
[[nodiscard]] std::optional<KernelResources> compiled_resources(std::string_view target, const KernelId& id);

}  // namespace dculab::lower::dculab_gpu
