// What each of several processes on one CPU machine has of it, while all of them do the same at the same time.
//
//   threads, peaks, rates of kernels   whole threads: floor(units / processes), one at least
//   caches of a core                   its threads' own
//   caches that all share, DRAM        size and bandwidth / processes
//   fork and join                      none where a process has one thread
//
// On a CPU the devices that share a model are processes of the machine; on a GPU machine each is a card of its own.
#pragma once

#include "core/step_plan.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Precondition: processes >= 1.
[[nodiscard]] Machine process_share(const Machine& machine, int processes);

// How many processes of the machine share what a step, or a part of a model, is planned for; 1 on GPUs.
[[nodiscard]] int processes_of(const Machine& machine, const StepPlan& plan);
[[nodiscard]] int processes_of(const Machine& machine, const ModelShape& part);

}  // namespace dculab::sim
