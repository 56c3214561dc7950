// What each of several processes or replicas on one CPU machine has of it, while all of them do the same at the same
// time.
//
//   threads, peaks, rates of kernels   whole threads: floor(units / processes), one at least
//   caches of a core                   its threads' own
//   caches that all share, DRAM        size and bandwidth / processes
//   fork and join                      none where a process has one thread
#pragma once

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Precondition: processes >= 1.
[[nodiscard]] Machine process_share(const Machine& machine, int processes);

}  // namespace dculab::sim
