// Measures what does not touch memory beyond L1: the clock, arithmetic peaks, forking and joining threads.
#pragma once

#include "engine/probe/host_measurements.hpp"
#include "engine/probe/sampling.hpp"
#include "kernels/cpu/probe/arithmetic.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace dculab::engine {

// One thread, no vector work.
[[nodiscard]] Hertz measure_clock(const Effort& effort);

// All threads of the team at once.
[[nodiscard]] ArithmeticRate measure_arithmetic(kernels::cpu::ThreadPool& team, kernels::cpu::Arithmetic arithmetic,
                                                const Effort& effort);

// From the call of an empty parallel loop, one task per thread, to its return, while the team is awake.
[[nodiscard]] Seconds measure_fork_join(kernels::cpu::ThreadPool& team, const Effort& effort);

}  // namespace dculab::engine
