// Streams of our products: y[m, n] = x[m, k] w[n, k]^T.
#pragma once

#include "core/op.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"
#include "lower/launch.hpp"

namespace dculab::lower::dculab_gpu {

// Activations other than f16 are f32 on the GPU.
[[nodiscard]] inline Dtype activations_of(const Op& op) {
  return op.activation_dtype == Dtype::f16 ? Dtype::f16 : Dtype::f32;
}

// Precondition: `kernel` is one that multiplies `op`. `parts`: into which the product is split along k; up to 1: not
// split.
void add_product(Streams& streams, const Op& op, const KernelId& kernel, Units units, double parts);

}  // namespace dculab::lower::dculab_gpu
