#include "sim/study/naive_roofline.hpp"

#include <algorithm>

#include "sim/compute/peak.hpp"

namespace dculab::sim {

namespace {

[[nodiscard]] Seconds roofline(const Machine& machine, const Op& op, Bytes bytes) {
  const FlopsPerSecond peak = highest_rate(multiply_format(machine, multiplied_in(op)).peak);
  return std::max(op.flops / peak, bytes / machine.dram().bandwidth);
}

[[nodiscard]] Seconds roofline(const Machine& machine, const RecipeStep& step) {
  Seconds total;
  for (const Op& op : step.plan.ops)
    if (op.devices == 1) total += op.count * roofline(machine, op, op.unique_bytes());
  return total;
}

}  // namespace

Seconds naive_roofline(const Machine& machine, const Op& op) { return roofline(machine, op, op.unique_bytes()); }

Seconds naive_roofline(const Machine& machine, const Recipe& recipe) {
  if (recipe.probe) return probe_floor(machine, *recipe.probe);
  Seconds total;
  for (const RecipeStep& step : recipe.steps) total += step.times * roofline(machine, step);
  return total;
}

}  // namespace dculab::sim
