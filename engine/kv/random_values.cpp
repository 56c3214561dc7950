#include "engine/kv/random_values.hpp"

#include <algorithm>
#include <random>

#include "engine/checkpoint/stored_values.hpp"
#include "kernels/number_format.hpp"

namespace dculab::engine {

std::vector<std::byte> random_kv_values(Dtype dtype, std::uint64_t seed) {
  constexpr std::size_t kCount = 65521;
  std::mt19937_64 random(seed);
  std::vector<float> values(kCount);
  for (float& value : values) value = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
  std::vector<std::byte> stored(kCount * static_cast<std::size_t>(bits(dtype)) / 8);
  if (bits(dtype) != 8) {
    narrow(values, dtype, stored.data());
    return stored;
  }
  for (std::size_t i = 0; i < kCount && dtype == Dtype::int8; ++i)
    stored[i] = static_cast<std::byte>(static_cast<std::int8_t>(values[i] * 127));
  for (std::size_t i = 0; i < kCount && dtype != Dtype::int8; ++i)
    stored[i] = std::byte{dtype == Dtype::fp8_e4m3 ? kernels::fp8_e4m3_from_f32(values[i])
                                                   : kernels::fp8_e5m2_from_f32(values[i])};
  return stored;
}

void repeat(kernels::gpu::Device& device, void* memory, std::size_t bytes, std::span<const std::byte> pattern) {
  device.upload(memory, pattern.data(), std::min(pattern.size(), bytes));
  for (std::size_t filled = pattern.size(); filled < bytes; filled *= 2)
    device.copy(static_cast<std::byte*>(memory) + filled, memory, std::min(filled, bytes - filled));
  device.synchronize();
}

void fill_randomly(kernels::gpu::Device& device, void* memory, std::size_t bytes, Dtype dtype, std::uint64_t seed) {
  repeat(device, memory, bytes, random_kv_values(dtype, seed));
}

}  // namespace dculab::engine
