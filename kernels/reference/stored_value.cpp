#include "kernels/reference/stored_value.hpp"

#include "kernels/number_format.hpp"

namespace dculab::kernels::reference {

double load_value(const void* data, Dtype dtype, std::size_t index) {
  if (dtype == Dtype::f32) return static_cast<const float*>(data)[index];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[index];
  return dtype == Dtype::f16 ? f32_from_f16(bits) : f32_from_bf16(bits);
}

void store_value(void* data, Dtype dtype, std::size_t index, double value) {
  const auto rounded = static_cast<float>(value);
  if (dtype == Dtype::f32) {
    static_cast<float*>(data)[index] = rounded;
    return;
  }
  static_cast<std::uint16_t*>(data)[index] = dtype == Dtype::f16 ? f16_from_f32(rounded) : bf16_from_f32(rounded);
}

}  // namespace dculab::kernels::reference
