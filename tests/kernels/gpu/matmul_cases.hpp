// Sizes and formats of products: y[m, n] = x[m, k] w[n, k]^T.
#pragma once

#include "core/dtype.hpp"

namespace dculab::kernels::gpu {

struct MatmulShape {
  int m, n, k;
};

struct MatmulFormats {
  Dtype x, w, y;
};

}  // namespace dculab::kernels::gpu
