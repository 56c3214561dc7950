#include "sim/calibration/floor_check.hpp"

#include <algorithm>

#include "model/plan_step.hpp"
#include "sim/compute/peak.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::sim {
namespace {

struct Floor {
  Seconds time;
  std::string limit;
};

// All executions of `op`, multiplied the fastest way the machine has.
[[nodiscard]] Seconds least_arithmetic_time(const Machine& machine, const Op& op) {
  return op.flops * op.count / highest_rate(multiply_format(machine, multiplied_in(op)).peak);
}

[[nodiscard]] Bytes capacity_of(const Machine& machine, const MemoryLevel& level) {
  return level.scope == Scope::compute_unit ? level.size * machine.compute_units : level.size;
}

[[nodiscard]] Floor least_time(const Machine& machine, Seconds arithmetic, Bytes distinct) {
  Floor floor{arithmetic, "arithmetic peak"};
  Bytes beyond = distinct;  // cannot be in the levels above
  for (const MemoryLevel& level : machine.memory) {
    const Seconds time = std::max(beyond, Bytes(0)) / level.bandwidth;
    if (time > floor.time) floor = {time, level.name};
    beyond -= capacity_of(machine, level);
  }
  return floor;
}

// Weights and KV of an op: what no earlier op can have left in registers.
[[nodiscard]] Bytes persistent_bytes(const Op& op) {
  Bytes total;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::weight || operand.role == OperandRole::kv_read) total += operand.unique;
  return total;
}

// The ops that config/profile/step_search.hpp may find no kernel for.
[[nodiscard]] bool may_be_fused(OpKind kind) {
  return kind == OpKind::embedding || kind == OpKind::rope_and_cache || kind == OpKind::activation_mul;
}

[[nodiscard]] Floor floor_of_step(const Machine& machine, const StepPlan& plan) {
  Seconds arithmetic;
  for (const Op& op : plan.ops) arithmetic += least_arithmetic_time(machine, op);
  return least_time(machine, arithmetic, step_footprint(plan));
}

}  // namespace

Seconds step_floor(const Machine& machine, const StepPlan& plan) { return floor_of_step(machine, plan).time; }

std::vector<FloorViolation> floor_violations(const Machine& machine, std::span<const TraceStep> steps) {
  std::vector<FloorViolation> found;
  for (std::size_t row = 0; row < steps.size(); ++row) {
    const TraceStep& step = steps[row];
    const StepPlan plan = plan_step(step.model, step.options, step.batch);
    const auto check = [&](std::string what, Seconds measured, const Floor& floor) {
      if (measured < floor.time) found.push_back({row, std::move(what), floor.limit, measured, floor.time});
    };
    check("step", step.duration, floor_of_step(machine, plan));
    for (std::size_t index = 0; index < step.op_durations.size(); ++index) {
      const Op& op = plan.ops[index];
      if (step.op_durations[index] == Seconds(0) && may_be_fused(op.kind)) continue;
      check(std::string(op.name), step.op_durations[index],
            least_time(machine, least_arithmetic_time(machine, op), persistent_bytes(op) * op.count));
    }
  }
  return found;
}

}  // namespace dculab::sim
