#include "lower/dculab_gpu/matrix_cores.hpp"

#include <string_view>

#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/product_streams.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

constexpr int kMatrixWave = 64;

// kernels/gpu/matmul/matrix_tile.hpp: MatrixFormat.
[[nodiscard]] bool is_matrix_format(Dtype x, Dtype weights) {
  return weights == Dtype::bf16 || (weights == Dtype::f16 && x == Dtype::f16);
}

[[nodiscard]] bool multiplies_on_matrix_cores(const KernelId& id) {
  switch (id.kernel) {
    case Kernel::gemm:
    case Kernel::expert_gemm:
      return is_matrix_format(id.values, id.stored);
    case Kernel::prefill_attention:
    case Kernel::expanded_attention:
    case Kernel::kivi_prefill:
      return id.values == Dtype::f16;
    default:
      return false;
  }
}

}  // namespace

Units units_of(const Device& device) {
  if (!device.has_matrix_cores) return Units::vector;
  const std::string_view target = device.kernel_target;  // of every op: with the length known, nothing is called
  const bool has_kernels = target.size() == 6 && (target.starts_with("gfx908") || target.starts_with("gfx90a"));
  return has_kernels ? Units::matrix : Units::vector;
}

Units units_of(const Op& op, const Device& device) {
  if (units_of(device) == Units::vector) return Units::vector;
  return multiplies_on_matrix_cores(kernel_of(op, kMatrixWave, 1)) ? Units::matrix : Units::vector;
}

int parts_of_x(const Op& op) {
  if (op.weight_format.dtype != Dtype::bf16) return 1;
  return activations_of(op) == Dtype::f16 ? 2 : 3;
}

}  // namespace dculab::lower::dculab_gpu
