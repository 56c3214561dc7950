#include "kernels/cpu/thread_placement.hpp"

#ifdef __linux__
#include <sched.h>
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

}  // namespace

bool bind_to_share(int worker, int workers, CpuShare team) noexcept {
  const cpu_set_t& cpus = cpus_of_process();
  const int all = CPU_COUNT(&cpus);
  const int first = all * team.index / team.of, count = all * (team.index + 1) / team.of - first;
  if (workers > count) return false;
  const int begin = first + count * worker / workers, end = first + count * (worker + 1) / workers;
  cpu_set_t share;
  CPU_ZERO(&share);
  for (int cpu = 0, index = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    if (index >= begin && index < end) CPU_SET(cpu, &share);
    ++index;
  }
  // A refusal (CPUs taken away since) leaves the thread where it was, which is slower and no less right.
  return sched_setaffinity(0, sizeof share, &share) == 0;
}

void release_binding() noexcept { sched_setaffinity(0, sizeof(cpu_set_t), &cpus_of_process()); }

#else

bool bind_to_share(int, int, CpuShare) noexcept { return false; }
void release_binding() noexcept {}

#endif

}  // namespace dculab::kernels::cpu
