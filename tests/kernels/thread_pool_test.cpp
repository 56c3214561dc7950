// Does every task run exactly once, whatever the team and whenever its workers come, can the team sleep and wake, does
// it do with the threads it gets, and does each worker keep to its CPUs?
#include "kernels/cpu/thread_pool.hpp"

#ifdef __linux__
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#endif

#include <array>
#include <atomic>
#include <chrono>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/few_threads.hpp"

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

// Plain counters: a task that two workers run, or a worker that is late for a job and runs it still, is a race.
TEST_CASE("two million small jobs are each complete when the call returns") {
  for (const int num_threads : {2, 3}) {
    ThreadPool threads(num_threads);
    int wrong = 0;
    for (int round = 0; round < 1'000'000; ++round) {
      std::array<int, 5> runs{};
      const int tasks = 2 + round % 4;
      threads.parallel_for(
          tasks, [&runs](int task, int) { ++runs[static_cast<std::size_t>(task)]; },
          round % 4096 == 0 ? Distribution::fixed : Distribution::dynamic);
      for (int task = 0; task < 5; ++task) wrong += runs[static_cast<std::size_t>(task)] != (task < tasks ? 1 : 0);
    }
    CHECK(wrong == 0);
  }
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

// Keeps a worker from its work, as another process on its CPU would. A signal's handler holds the thread.
enum class Held : int { no, yes, gave_up };

std::atomic<Held> held{Held::no};
std::atomic<bool> released{false};

void hold(int) {
  held = Held::yes;
  const timespec millisecond{0, 1'000'000};
  for (int waited = 0; !released; ++waited) {
    if (waited == 20'000) held = Held::gave_up;
    if (held == Held::gave_up) return;
    nanosleep(&millisecond, nullptr);
  }
  held = Held::no;
}

// Worker 1 of a team is held while this lives.
class HeldWorker {
 public:
  explicit HeldWorker(ThreadPool& threads) {
    released = false;
    struct sigaction action {};
    action.sa_handler = hold;
    sigaction(SIGUSR1, &action, &before_);
    pthread_t thread{};
    threads.parallel_for(
        threads.num_threads(),
        [&](int, int worker) {
          if (worker == 1) thread = pthread_self();
        },
        Distribution::fixed);
    pthread_kill(thread, SIGUSR1);
    while (held == Held::no) std::this_thread::yield();
  }
  ~HeldWorker() {
    release();
    while (held == Held::yes) std::this_thread::yield();
    sigaction(SIGUSR1, &before_, nullptr);
  }
  HeldWorker(const HeldWorker&) = delete;
  HeldWorker& operator=(const HeldWorker&) = delete;

  void release() { released = true; }

 private:
  struct sigaction before_ {};
};

// Jobs of 16 tasks; how many tasks did not run exactly once.
[[nodiscard]] int count_wrong(ThreadPool& threads, int jobs) {
  int wrong = 0;
  for (int job = 0; job < jobs; ++job) {
    std::array<int, 16> runs{};
    threads.parallel_for(16, [&runs](int task, int) { ++runs[static_cast<std::size_t>(task)]; });
    for (const int count : runs) wrong += count != 1 ? 1 : 0;
  }
  return wrong;
}

// How many threads has a team of eight that does its work, where it may start `more` besides the first one?
[[nodiscard]] int team_under_limit(rlim_t more) {
  return with_few_threads(more, [] {
    ThreadPool threads(8);
    return count_wrong(threads, 100) == 0 ? threads.num_threads() : 99;
  });
}

[[nodiscard]] cpu_set_t allowed_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  return cpus;
}

}  // namespace

TEST_CASE("a worker that never comes is not waited for, and one that comes late finds nothing to do") {
  for (const int num_threads : {2, 3}) {
    ThreadPool threads(num_threads);
    HeldWorker worker(threads);
    CHECK(count_wrong(threads, 1000) == 0);
    CHECK(held == Held::yes);
    worker.release();
    CHECK(count_wrong(threads, 20'000) == 0);
  }
}

TEST_CASE("a team has as many threads as can be had") {
  CHECK(team_under_limit(0) == 1);
  if (getuid() != 0) {
    WARN("not tested: a team with some of its threads, which needs root");
    return;
  }
  const int some = team_under_limit(5);
  CHECK(some > 1);
  CHECK(some < 8);
}

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
