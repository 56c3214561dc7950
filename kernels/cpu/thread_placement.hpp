// Which CPUs a worker of a team may run on: an equal share of those that the process was started with, so that no two
// workers ever meet on one. Left to itself, Linux wakes a sleeping team on one CPU again and again, where each worker
// spins while the other has work: steps after a pause then take three times as long (docs/reference/engine.md).
#pragma once

namespace dculab::kernels::cpu {

// The CPUs of one team among `of` teams that work beside each other: all of the process for a team alone.
struct CpuShare {
  int index = 0;
  int of = 1;
};

// Binds the calling thread to the share of `worker` in a team of `workers` that has the CPUs of `team`. Shares of CPUs
// rather than one CPU each: two processes with small teams leave each other room. Does nothing and returns false with
// more workers than CPUs, or elsewhere than on Linux: workers may meet on a CPU then.
bool bind_to_share(int worker, int workers, CpuShare team = {}) noexcept;

// Lets the calling thread run on all CPUs of the process again.
void release_binding() noexcept;

}  // namespace dculab::kernels::cpu
