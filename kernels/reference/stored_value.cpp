#include "kernels/reference/stored_value.hpp"

#include <stdexcept>

#include "kernels/number_format.hpp"

namespace dculab::kernels::reference {

double load_value(const void* data, Dtype dtype, std::size_t index) {
  switch (dtype) {
    case Dtype::f32:
      return static_cast<const float*>(data)[index];
    case Dtype::f16:
      return f32_from_f16(static_cast<const std::uint16_t*>(data)[index]);
    case Dtype::bf16:
      return f32_from_bf16(static_cast<const std::uint16_t*>(data)[index]);
    case Dtype::fp8_e4m3:
      return f32_from_fp8_e4m3(static_cast<const std::uint8_t*>(data)[index]);
    case Dtype::fp8_e5m2:
      return f32_from_fp8_e5m2(static_cast<const std::uint8_t*>(data)[index]);
    default:
      break;
  }
  throw std::invalid_argument("load_value: integers have no value without their scale");
}

void store_value(void* data, Dtype dtype, std::size_t index, double value) {
  const auto rounded = static_cast<float>(value);
  switch (dtype) {
    case Dtype::f32:
      static_cast<float*>(data)[index] = rounded;
      return;
    case Dtype::f16:
      static_cast<std::uint16_t*>(data)[index] = f16_from_f32(rounded);
      return;
    case Dtype::bf16:
      static_cast<std::uint16_t*>(data)[index] = bf16_from_f32(rounded);
      return;
    case Dtype::fp8_e4m3:
      static_cast<std::uint8_t*>(data)[index] = fp8_e4m3_from_f32(rounded);
      return;
    case Dtype::fp8_e5m2:
      static_cast<std::uint8_t*>(data)[index] = fp8_e5m2_from_f32(rounded);
      return;
    default:
      break;
  }
  throw std::invalid_argument("store_value: integers have no value without their scale");
}

}  // namespace dculab::kernels::reference
