#include "sim/study/naive_roofline.hpp"

#include <algorithm>

#include "sim/compute/peak.hpp"

namespace dculab::sim {

namespace {

[[nodiscard]] Seconds roofline(const Machine& machine, const Op& op, Bytes bytes) {
  const FlopsPerSecond peak = highest_rate(multiply_format(machine, multiplied_in(op)).peak);
  return std::max(op.flops / peak, bytes / machine.dram().bandwidth);
}

[[nodiscard]] Seconds roofline(const Machine& machine, const RunStep& step) {
  Seconds total;
  for (const Op& op : step.plan.ops)
    if (op.devices == 1) total += op.count * roofline(machine, op, op.unique_bytes());
  return total;
}

}  // namespace

Seconds naive_roofline(const Machine& machine, const Op& op) { return roofline(machine, op, op.unique_bytes()); }

Seconds naive_roofline(const Machine& machine, const MeasuredRun& measured_run) {
  if (measured_run.probe) return probe_floor(machine, *measured_run.probe);
  Seconds total;
  for (const RunStep& step : measured_run.steps) total += step.times * roofline(machine, step);
  return total;
}

}  // namespace dculab::sim
