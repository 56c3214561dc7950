// Who runs the tasks of a kernel: a fixed team of threads, the caller among them, with a fork and join of about a
// microsecond while the team is busy. Each has its own share of the CPUs (thread_placement.hpp), the caller for as long
// as the team exists.
//
// A worker whose CPU is taken by another process costs what it would have done and no more: the caller does not wait
// for workers to arrive. A worker enters a job while the job is open. The caller closes it when no task is left to
// take, and then waits only for the tasks that workers inside are running.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/cpu/thread_placement.hpp"

namespace dculab::kernels::cpu {

// Tasks are dealt out as one contiguous range per worker, so that each streams through its own memory.
enum class Distribution : std::uint8_t {
  fixed,    // a worker runs its range only: every worker has to come, however late, where there are two tasks or more.
            // For measurements of each core
  dynamic,  // a worker that is done takes tasks from the ranges of others
};

class ThreadPool {
 public:
  // A team of `num_threads` workers, 1 to 32767, or of as many as the system grants: num_threads() says how many.
  // Worker 0 is the thread that calls parallel_for, and that makes the team and ends it. Of several teams beside each
  // other each has its own share of the CPUs.
  explicit ThreadPool(int num_threads, CpuShare share = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Runs fn(task_index, worker_index) for every task in [0, num_tasks) and returns when all are done.
  // fn must not throw and must not call parallel_for. One caller at a time.
  template <typename Fn>
  void parallel_for(int num_tasks, Fn&& fn, Distribution distribution = Distribution::dynamic) {
    using Body = std::remove_reference_t<Fn>;
    auto invoke = [](void* body, int task, int worker) { (*static_cast<Body*>(body))(task, worker); };
    run({invoke, const_cast<void*>(static_cast<const void*>(&fn)), num_tasks, distribution, 0});
  }

 private:
  struct Job {
    void (*invoke)(void* body, int task, int worker) = nullptr;
    void* body = nullptr;
    int num_tasks = 0;
    Distribution distribution = Distribution::dynamic;
    std::uint32_t number = 0;
  };

  // The tasks of one worker that are not yet taken; a cache line each.
  struct alignas(64) Share {
    std::atomic<int> next{0};
    int end = 0;
  };

  void run(const Job& job);
  void work(int worker);
  void serve(int worker);
  [[nodiscard]] bool enter();
  void leave(std::uint32_t left);
  void await_empty() const;

  // What gate_ consists of. job_ and the body behind it may be read only while one is inside.
  static constexpr std::uint32_t kInside = 1;          // times the workers that are inside the job
  static constexpr std::uint32_t kExpected = 1 << 16;  // times the workers that a fixed job still waits for
  static constexpr std::uint32_t kOpen = 1U << 31;     // workers may enter

  CpuShare cpus_;
  bool is_bound_ = false;      // the thread that made the team
  std::vector<Share> shares_;  // [num_threads]
  int spins_ = 0;              // before a thread that waits goes to sleep
  Job job_;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // number of the newest job; a change wakes the workers
  alignas(64) std::atomic<std::uint32_t> gate_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;  // [num_threads - 1]
};

}  // namespace dculab::kernels::cpu
