// From what is computed to how a kernel does it.
//
//   elementwise  GPU: norms a workgroup a row, others 256 threads of 8 values each; rotating (not with ALiBi) and
//                caching are a kernel each. CPU: rows go to the threads in equal shares; groups of a KIVI cache that
//                are complete are quantized value by value
//   matmul       matmul.hpp
//   attention    attention.hpp
#pragma once

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/device.hpp"
#include "lower/kernel_library.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// `op` of `step`, whose batch says what attention walks.
[[nodiscard]] Launch lower(const Op& op, const StepPlan& step, const Device& device, const Kernels& kernels = {});

}  // namespace dculab::lower
