// Does every task run exactly once, whatever the team, and can the team sleep and wake?
#include "kernels/cpu/thread_pool.hpp"

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

}  // namespace dculab::kernels::cpu
