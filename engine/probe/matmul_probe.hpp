// How fast do the engine's own matmul kernels multiply, with weights that lie in L2 and with weights from memory?
#pragma once

#include <vector>

#include "engine/probe/host_measurements.hpp"
#include "engine/probe/sampling.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace dculab::engine {

struct ProbedMemory {
  Bytes cache;          // a thread's share of L2: weights fill half of it
  Bytes beyond_caches;  // weights of all threads together, at least; more than the caches hold
};

// Every weight format and activation mode that the CPU kernels serve, with weights of 2048 and of 512 in-features, at
// several numbers of rows; int4 in groups of
// 128, int8 with one scale a row. Each thread multiplies a matrix of its own; rates are per CPU time and added up. All
// are measured in turn, round after round, so that a slow second hits every kernel alike. Rows beyond those at which
// some product takes 40 ms are left out.
[[nodiscard]] std::vector<MatmulMeasurement> measure_matmuls(kernels::cpu::ThreadPool& team, const ProbedMemory& memory,
                                                             const Effort& effort);

}  // namespace dculab::engine
