#include "sim/hardware/process_share.hpp"

#include <algorithm>

namespace dculab::sim {
namespace {

void scale_rates(std::map<MatmulKernel, RateByRows>& rates, double share) {
  for (auto& [kernel, by_rows] : rates)
    for (auto& [rows, rate] : by_rows) rate *= share;
}

}  // namespace

Machine process_share(const Machine& machine, int processes) {
  Machine part = machine;
  if (processes == 1) return part;
  const int units = std::max(1, machine.compute_units / processes);
  const double share = std::min(1.0 / processes, static_cast<double>(units) / machine.compute_units);
  part.compute_units = units;
  part.stated_units = 0;
  for (auto& [dtype, peak] : part.peaks) {
    peak.vector *= share;
    if (peak.matrix) *peak.matrix *= share;
  }
  scale_rates(part.matmul_rates, share);
  scale_rates(part.short_matmul_rates, share);
  for (MemoryLevel& level : part.memory) {
    if (level.scope == Scope::compute_unit) {
      level.bandwidth *= share;
      continue;
    }
    level.size *= 1.0 / processes;
    level.bandwidth *= 1.0 / processes;
  }
  if (units == 1) part.overheads.kernel_launch = Seconds();
  return part;
}

int processes_of(const Machine& machine, const StepPlan& plan) {
  if (machine.kind != lower::DeviceKind::cpu) return 1;
  int processes = 1;
  for (const Op& op : plan.ops) processes = std::max(processes, op.devices);
  return processes;
}

int processes_of(const Machine& machine, const ModelShape& part) {
  if (machine.kind != lower::DeviceKind::cpu) return 1;
  int processes = part.tensor_parallel_size;
  for (const LayerKind& kind : part.kinds)
    if (kind.experts && kind.experts->part) processes = std::max(processes, kind.experts->part->devices);
  return processes;
}

}  // namespace dculab::sim
