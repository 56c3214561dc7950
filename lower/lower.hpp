// From what is computed to how a kernel does it.
//
//   elementwise  elementwise.hpp
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
