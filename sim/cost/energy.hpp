// The energy of a step: what its ops draw while they keep memory and arithmetic busy, beside what the device draws all
// the time.
//
//   step   = power.idle * time + sum over ops of executions * active
//   active = min( (power.memory_bound  - power.idle) * time of the slowest memory level, with refills of cold caches
//               + (power.compute_bound - power.idle) * time of arithmetic,
//                 (power.compute_bound - power.idle) * time of the op )
//
// So the power of an op lies between idle and compute_bound: it goes from one to the other with the shares of its time
// in which each resource is busy, and is memory_bound where it waits for memory alone. What is moved and what is
// computed have an energy each, whatever limits the op, and the board has a limit: the roofline of energy with a power
// cap (Choi, Bedard, Fowler, Vuduc, "A Roofline Model of Energy", IPDPS 2013; Choi, Dukhan, Liu, Vuduc, "Algorithmic
// Time, Energy, and Power on Candidate HPC Compute Building Blocks", IPDPS 2014). There a byte of DRAM has an energy;
// here the busy time of the slowest level has, since kernels that reach half of DRAM's bandwidth draw almost as much as
// those that reach all of it (docs/reference/cost-law.md#energy).
//
// While the host works, a kernel starts or devices exchange results, a device counts as idle.
// On a CPU machine the devices are processes, and each has its share of the machine's power.
#pragma once

#include "core/step_plan.hpp"
#include "core/units.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// What a device draws beyond power.idle for a step that was priced on `machine`. Precondition of both:
// machine.power.is_stated().
[[nodiscard]] Joules active_energy(const Machine& machine, const StepPlan& plan, const StepPrice& price);

// The same for blocks that are copied in DRAM for so long.
[[nodiscard]] Joules copying_energy(const Machine& machine, Seconds time);

}  // namespace dculab::sim
