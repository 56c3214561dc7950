// What a kvquant4, kvquant3 or kvquant2 KV cache keeps of a token besides its codes. The rules:
// docs/reference/kv-cache.md.
#pragma once

#include "core/dtype.hpp"

namespace dculab {

[[nodiscard]] constexpr bool is_kvquant(Dtype dtype) {
  return dtype == Dtype::kvquant4 || dtype == Dtype::kvquant3 || dtype == Dtype::kvquant2;
}

// Values of a token's K in a layer, over all KV heads, that are kept in F16, and as many of its V: 1 %, rounded up.
[[nodiscard]] constexpr int kvquant_outliers(int kv_width) { return (kv_width + 99) / 100; }

inline constexpr int kKvQuantOutlierBytes = 4;  // its channel and its value
inline constexpr int kKvQuantScaleBytes = 4;    // of a token's V: the middle of its range and half of it, in F16

}  // namespace dculab
