#include "core/step_plan.hpp"

namespace dculab {

FlopCount total_flops(const StepPlan& plan) {
  FlopCount total;
  for (const Op& op : plan.ops) total += op.flops * op.count;
  return total;
}

}  // namespace dculab
