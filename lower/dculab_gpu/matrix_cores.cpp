#include "lower/dculab_gpu/matrix_cores.hpp"

#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/product_streams.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

constexpr int kMatrixWave = 64;

// kernels/gpu/matmul/matrix_tile.hpp: MatrixFormat.
[[nodiscard]] bool is_matrix_format(Dtype x, Dtype weights) {
  return weights == Dtype::bf16 || (weights == Dtype::f16 && x == Dtype::f16);
}

}  // namespace

Units units_of(const Device& device) {
  const bool has_kernels = device.kernel_target == "gfx908" || device.kernel_target == "gfx90a";
  return device.has_matrix_cores && has_kernels ? Units::matrix : Units::vector;
}

Units units_of(const Op& op, const Device& device) {
  if (units_of(device) == Units::vector) return Units::vector;
  const KernelId kernel = kernel_of(op, kMatrixWave, 1);
  const bool is_product = kernel.kernel == Kernel::gemm || kernel.kernel == Kernel::expert_gemm;
  const bool is_prefill = kernel.kernel == Kernel::prefill_attention || kernel.kernel == Kernel::expanded_attention;
  const bool multiplies =
      (is_product && is_matrix_format(kernel.values, kernel.stored)) || (is_prefill && kernel.values == Dtype::f16);
  return multiplies ? Units::matrix : Units::vector;
}

int parts_of_x(const Op& op) {
  if (op.weight_format.dtype != Dtype::bf16) return 1;
  return activations_of(op) == Dtype::f16 ? 2 : 3;
}

}  // namespace dculab::lower::dculab_gpu
