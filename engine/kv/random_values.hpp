// Values for a KV cache that is measured without a prefill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.hpp"
#include "kernels/gpu/device.hpp"

namespace dculab::engine {

// A stretch of values in [-1, 1), stored in `dtype` (int8: times 127), to be repeated over the whole cache. Its length
// is a prime, so that no two blocks are alike.
[[nodiscard]] std::vector<std::byte> random_kv_values(Dtype dtype, std::uint64_t seed);

// Fills memory of a device with a pattern, over and over: uploaded once, then copied within the device. Waits until it
// is done.
void repeat(kernels::gpu::Device& device, void* memory, std::size_t bytes, std::span<const std::byte> pattern);

// The same with random values.
void fill_randomly(kernels::gpu::Device& device, void* memory, std::size_t bytes, Dtype dtype, std::uint64_t seed);

}  // namespace dculab::engine
