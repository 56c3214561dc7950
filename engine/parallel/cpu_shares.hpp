// Which CPUs the threads of a rank run on: those of the process are divided among the ranks, so that no two of them
// ever meet on one.
#pragma once

#include <vector>

#include "kernels/cpu/thread_pool.hpp"

namespace dculab::engine {

// CPUs that the calling thread may run on, ascending; empty where the system does not say.
[[nodiscard]] std::vector<int> allowed_cpus();

// Of `cpus`, those of a rank: as many for each. All of them where there are fewer than ranks.
[[nodiscard]] std::vector<int> cpus_of_rank(const std::vector<int>& cpus, int rank, int ranks);

// Lets the calling thread run on `cpus` alone. A refusal leaves it where it was, which is slower and no less right.
void bind_thread(const std::vector<int>& cpus) noexcept;

// Binds each thread of a team, the caller among them, to its share of `cpus`.
void bind_team(kernels::cpu::ThreadPool& team, const std::vector<int>& cpus);

}  // namespace dculab::engine
