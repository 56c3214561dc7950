// Does every task run exactly once, whatever the team, can the team sleep and wake, and does each worker keep to its
// CPUs?
#include "kernels/cpu/thread_pool.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <chrono>
#include <vector>

#include "tests/support/catch.hpp"

namespace dculab::kernels::cpu {

TEST_CASE("every task runs once, by a worker of the team") {
  for (const int num_threads : {1, 2, 3, 7}) {
    ThreadPool threads(num_threads);
    CHECK(threads.num_threads() == num_threads);
    for (const Distribution distribution : {Distribution::fixed, Distribution::dynamic}) {
      for (const int tasks : {0, 1, 2, 3, 10, 1000}) {
        std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
        std::atomic<int> strangers{0};
        threads.parallel_for(
            tasks,
            [&](int task, int worker) {
              ++runs[static_cast<std::size_t>(task)];
              if (worker < 0 || worker >= num_threads) ++strangers;
            },
            distribution);
        int wrong = 0;
        for (const std::atomic<int>& count : runs) wrong += count != 1 ? 1 : 0;
        CHECK(wrong == 0);
        CHECK(strangers == 0);
      }
    }
  }
}

TEST_CASE("a fixed distribution gives each worker one contiguous range") {
  ThreadPool threads(3);
  std::vector<int> owner(10, -1);
  threads.parallel_for(
      10, [&](int task, int worker) { owner[static_cast<std::size_t>(task)] = worker; }, Distribution::fixed);
  CHECK(owner == std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2, 2});
}

TEST_CASE("what tasks wrote is seen after the call, over many short calls") {
  ThreadPool threads(2);
  std::vector<long> sums(2, 0);
  for (int round = 0; round < 20000; ++round) {
    threads.parallel_for(
        2, [&](int task, int) { sums[static_cast<std::size_t>(task)] += round; }, Distribution::fixed);
  }
  CHECK(sums == std::vector<long>{199990000, 199990000});
}

TEST_CASE("a team that has gone to sleep wakes up") {
  ThreadPool threads(2);
  std::atomic<int> runs{0};
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    threads.parallel_for(8, [&](int, int) { ++runs; });
  }
  CHECK(runs == 40);
}

#ifdef __linux__
namespace {

[[nodiscard]] cpu_set_t allowed_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  return cpus;
}

}  // namespace

TEST_CASE("no two workers share a CPU while there is one for each, and the caller gets all back") {
  const cpu_set_t before = allowed_cpus();
  const int cpus = CPU_COUNT(&before);
  for (const int workers : {1, 2, 3, cpus, cpus + 1}) {
    {
      ThreadPool threads(workers);
      std::vector<cpu_set_t> share(static_cast<std::size_t>(workers));
      threads.parallel_for(
          workers, [&](int task, int) { share[static_cast<std::size_t>(task)] = allowed_cpus(); }, Distribution::fixed);
      cpu_set_t all;
      CPU_ZERO(&all);
      int in_sum = 0;
      for (const cpu_set_t& one : share) {
        in_sum += CPU_COUNT(&one);
        CPU_OR(&all, &all, &one);
      }
      CHECK(CPU_EQUAL(&all, &before));
      CHECK(in_sum == (workers <= cpus ? cpus : workers * cpus));
    }
    const cpu_set_t after = allowed_cpus();
    CHECK(CPU_EQUAL(&after, &before));
  }
}
#endif

}  // namespace dculab::kernels::cpu
