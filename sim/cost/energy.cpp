#include "sim/cost/energy.hpp"

#include <algorithm>

#include "sim/hardware/process_share.hpp"

namespace dculab::sim {

Joules active_energy(const Machine& machine, const StepPlan& plan, const StepPrice& price) {
  const Power& power = machine.power;
  const int processes = processes_of(machine, plan);
  const Watts moving = (*power.memory_bound - *power.idle) / processes;
  const Watts computing = (*power.compute_bound - *power.idle) / processes;
  Joules total;
  for (const OpPrice& op : price.ops) {
    const Joules busy = moving * (op.memory + op.cold_misses) + computing * op.compute;
    total += op.count * std::min(busy, computing * op.seconds);
  }
  return total;
}

Joules copying_energy(const Machine& machine, Seconds time) {
  return (*machine.power.memory_bound - *machine.power.idle) * time;
}

}  // namespace dculab::sim
