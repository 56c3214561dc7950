#include "engine/parallel/cpu_shares.hpp"

#include <cstddef>

#ifdef __linux__
#include <sched.h>
#endif

namespace dculab::engine {

#ifdef __linux__

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  return cpus;
}

void bind_thread(const std::vector<int>& cpus) noexcept {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

#else

std::vector<int> allowed_cpus() { return {}; }
void bind_thread(const std::vector<int>&) noexcept {}

#endif

std::vector<int> cpus_of_rank(const std::vector<int>& cpus, int rank, int ranks) {
  const auto count = static_cast<std::ptrdiff_t>(cpus.size());
  if (count < ranks) return cpus;
  return {cpus.begin() + count * rank / ranks, cpus.begin() + count * (rank + 1) / ranks};
}

void bind_team(kernels::cpu::ThreadPool& team, const std::vector<int>& cpus) {
  const int workers = team.num_threads();
  if (workers == 1) return bind_thread(cpus);
  team.parallel_for(
      workers, [&](int worker, int) { bind_thread(cpus_of_rank(cpus, worker, workers)); },
      kernels::cpu::Distribution::fixed);
}

}  // namespace dculab::engine
