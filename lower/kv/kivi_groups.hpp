// What a step does to a kivi4 or kivi2 cache beside attention.
#pragma once

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// Of rope_and_cache: values of K and V that are quantized.
struct KiviGroups {
  double values = 0;
  double from_residual = 0;  // of these; the others are new
  double head_dim = 1;
};
[[nodiscard]] KiviGroups kivi_groups(const Op& op);

// On a GPU (kernels/gpu/kv/kivi.hip.hpp): attention is followed by a kernel that puts the new tokens into the
// residuals, and each phase with complete groups has one that quantizes them.
void add_kivi_kernels(const Op& op, const StepPlan& step, Launch& launch);

}  // namespace dculab::lower
