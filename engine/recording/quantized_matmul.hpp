// Address traces of the int4 (GPTQ), int8 and FP8 matmuls: the kernels alone, on zeros.
#pragma once

#include <vector>

#include "core/address_trace.hpp"
#include "core/op.hpp"

namespace dculab::engine {

// The launches of one execution. Precondition: `op` is a matmul whose weights are int4, int8 or fp8_e4m3. Throws
// InputError for shapes that the kernels do not take.
[[nodiscard]] std::vector<AddressTrace> record_quantized_matmul(const Op& op, int wave_size);

}  // namespace dculab::engine
