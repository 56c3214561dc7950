// From what is computed to how a kernel does it.
//
//   elementwise  GPU: norms a workgroup a row, others 256 threads of 8 values each; rotating (not with ALiBi) and
//                caching are a kernel each. CPU: rows go to the threads in equal shares
//   matmul       matmul.hpp
//   attention    attention.hpp
#pragma once

#include "core/op.hpp"
#include "lower/device.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

[[nodiscard]] Launch lower(const Op& op, const Device& device);

// How often the op asks for its first operand of that role, a matmul for each weight once per row tile (a bias is a
// weight too, and comes later); 1 where it has none.
[[nodiscard]] double requests_of(const Op& op, OperandRole role);

}  // namespace dculab::lower
