#include "engine/checkpoint/stored_values.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/number_format.hpp"

namespace dculab::engine {

void widen(const void* stored, Dtype dtype, std::span<float> out) {
  if (dtype == Dtype::f32) {
    std::memcpy(out.data(), stored, out.size_bytes());
    return;
  }
  const auto* const words = static_cast<const std::uint16_t*>(stored);
  std::transform(words, words + out.size(), out.begin(),
                 dtype == Dtype::f16 ? kernels::f32_from_f16 : kernels::f32_from_bf16);
}

void narrow(std::span<const float> values, Dtype dtype, void* stored) {
  if (dtype == Dtype::f32) {
    std::memcpy(stored, values.data(), values.size_bytes());
    return;
  }
  std::transform(values.begin(), values.end(), static_cast<std::uint16_t*>(stored),
                 dtype == Dtype::f16 ? kernels::f16_from_f32 : kernels::bf16_from_f32);
}

}  // namespace dculab::engine
