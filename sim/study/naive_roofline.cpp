#include "sim/study/naive_roofline.hpp"

#include <algorithm>

#include "sim/compute/peak.hpp"

namespace dculab::sim {

Seconds naive_roofline(const Machine& machine, const Op& op) {
  const FlopsPerSecond peak = highest_rate(multiply_format(machine, multiplied_in(op)).peak);
  return std::max(op.flops / peak, op.unique_bytes() / machine.dram().bandwidth);
}

Seconds naive_roofline(const Machine& machine, const Recipe& recipe) {
  Seconds total;
  for (const RecipeStep& step : recipe.steps)
    for (const Op& op : step.plan.ops) total += step.times * op.count * naive_roofline(machine, op);
  return total;
}

}  // namespace dculab::sim
