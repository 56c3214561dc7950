// One model several times side by side, each on a thread of its own that opens it, runs it and closes it, with its
// share of the CPUs. Weights are shared; each has its own executor, KV cache and drafter.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/generate/open_model.hpp"
#include "kernels/cpu/thread_placement.hpp"

namespace dculab::engine {

class ReplicaThreads {
 public:
  using Make = std::function<OpenModel(kernels::cpu::CpuShare)>;
  using Work = std::function<void(int replica, OpenModel& model)>;

  // `make` is called on each replica's thread, for one replica after the other: what it throws is thrown here.
  ReplicaThreads(int count, const Make& make);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  [[nodiscard]] int count() const { return static_cast<int>(threads_.size()); }

  // `work` on all replicas' threads at the same time, and `meanwhile` on this one. Returns when all are done; throws
  // what `meanwhile` threw, or else the first of the others.
  void run(const Work& work, const std::function<void()>& meanwhile = {});

  // Of each replica's scheduler.
  [[nodiscard]] SchedulerLimits limits() const { return models_.front().scheduler_limits(); }

  // For what never changes: its shape and the size of its KV cache.
  [[nodiscard]] const ModelExecutor& executor(int replica) const {
    return *models_[static_cast<std::size_t>(replica)].executor;
  }

 private:
  using Task = std::function<void(int replica)>;

  void serve(int replica);
  void begin(Task task);
  void finish();  // waits, and throws
  void stop();

  std::mutex mutex_;
  std::condition_variable changed_;
  Task task_;                 // that runs; changed while no thread does
  std::uint64_t number_ = 0;  // of the task
  int running_ = 0;           // threads that have not ended it
  bool stopping_ = false;
  std::vector<std::exception_ptr> thrown_;  // [count]
  std::vector<OpenModel> models_;           // [count]
  std::vector<std::thread> threads_;
};

}  // namespace dculab::engine
