// How the GPU's kernels are run on a model.
#pragma once

#include "core/dtype.hpp"

namespace dculab::engine {

struct GpuVariant {
  Dtype activation, kv;
  int block_size, wave_size;
};

}  // namespace dculab::engine
