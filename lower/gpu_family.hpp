// GPU generations, as far as the kernels written for them differ.
#pragma once

#include "lower/device.hpp"

namespace dculab::lower {

[[nodiscard]] inline bool is_nvidia(const Device& device) { return !device.compute_capability.empty(); }

// Thread blocks form clusters, and a copy engine (TMA) fetches tiles while the warps that multiply do nothing else.
[[nodiscard]] inline bool is_hopper(const Device& device) { return device.compute_capability == "9.0"; }

}  // namespace dculab::lower
