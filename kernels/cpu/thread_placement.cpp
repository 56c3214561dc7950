#include "kernels/cpu/thread_placement.hpp"

#ifdef __linux__
#include <sched.h>

#include <vector>
#endif

namespace dculab::kernels::cpu {

#ifdef __linux__
namespace {

// Asked once, before any thread is bound: a bound thread's own answer would be its share.
[[nodiscard]] const cpu_set_t& cpus_of_process() {
  static const cpu_set_t cpus = [] {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    return allowed;
  }();
  return cpus;
}

[[nodiscard]] std::vector<int> numbers(const cpu_set_t& cpus) {
  std::vector<int> result;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cpus)) result.push_back(cpu);
  return result;
}

}  // namespace

bool bind_to_share(int worker, int workers) {
  const std::vector<int> cpus = numbers(cpus_of_process());
  const int count = static_cast<int>(cpus.size());
  if (workers > count) return false;
  cpu_set_t share;
  CPU_ZERO(&share);
  for (int index = count * worker / workers; index < count * (worker + 1) / workers; ++index)
    CPU_SET(cpus[static_cast<std::size_t>(index)], &share);
  // A refusal (CPUs taken away since) leaves the thread where it was, which is slower and no less right.
  sched_setaffinity(0, sizeof share, &share);
  return true;
}

void release_binding() { sched_setaffinity(0, sizeof(cpu_set_t), &cpus_of_process()); }

#else

bool bind_to_share(int, int) { return false; }
void release_binding() {}

#endif

}  // namespace dculab::kernels::cpu
