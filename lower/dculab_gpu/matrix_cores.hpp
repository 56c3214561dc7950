// Which of our GPU kernels multiply on matrix cores, and what: kernels/gpu/matrix_core.hpp.
#pragma once

#include "core/op.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/device.hpp"

namespace dculab::lower::dculab_gpu {

enum class Units : std::uint8_t { vector, matrix };

// Whether the build for the device's target has kernels that do. A card whose kernels are those of another target,
// because no public compiler knows its own, has none, whatever its matrix cores can do.
[[nodiscard]] Units units_of(const Device& device);

// What serves the op on the device: a product of many rows, or prefill attention, of 16-bit values.
[[nodiscard]] Units units_of(const Op& op, const Device& device);

// Values of 16 bits that each value of x becomes on matrix cores: 1, or of BF16 weights as many as have its bits.
[[nodiscard]] int parts_of_x(const Op& op);

}  // namespace dculab::lower::dculab_gpu
