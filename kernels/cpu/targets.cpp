// Which vector instruction sets the kernels can use on this CPU.
#include "kernels/cpu/dispatch.hpp"
// After dispatch.hpp:
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::kernels::cpu {

std::vector<std::string_view> vector_targets() {
  std::vector<std::string_view> names;
  hwy::SetSupportedTargetsForTest(0);
  for (std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0; targets &= targets - 1) {
    names.emplace_back(hwy::TargetName(targets & -targets));
  }
  return names;
}

void select_vector_target(std::string_view target) {
  hwy::SetSupportedTargetsForTest(0);
  for (std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0; targets &= targets - 1) {
    if (hwy::TargetName(targets & -targets) == target) hwy::GetChosenTarget().Update(targets & -targets);
  }
}

}  // namespace dculab::kernels::cpu
