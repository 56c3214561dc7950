// Our CPU kernels (kernels/cpu).
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::dculab_cpu {

extern const MatmulKernel kMatmul;        // each weight is asked for once
extern const AttentionKernel kAttention;  // geometry.hpp

}  // namespace dculab::lower::dculab_cpu
