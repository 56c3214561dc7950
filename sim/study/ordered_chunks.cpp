#include "sim/study/ordered_chunks.hpp"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dculab::sim {
namespace {

constexpr std::uint64_t kAhead = 4;  // chunks a thread, so that nobody waits for a slow one

struct Outcome {
  std::string result;
  std::exception_ptr failure;
};

class Queue {
 public:
  Queue(ChunkRange chunks, int threads)
      : next_(chunks.begin), delivered_(chunks.begin), end_(chunks.end), ahead_(kAhead * threads) {}

  // False when there is nothing left to do.
  [[nodiscard]] bool take(std::uint64_t& chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return next_ >= end_ || next_ < delivered_ + ahead_; });
    if (next_ >= end_) return false;
    chunk = next_++;
    return true;
  }

  void put(std::uint64_t chunk, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(chunk, std::move(outcome));
    changed_.notify_all();
  }

  [[nodiscard]] Outcome wait_for(std::uint64_t chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.contains(chunk); });
    Outcome outcome = std::move(waiting_.extract(chunk).mapped());
    delivered_ = chunk + 1;
    changed_.notify_all();
    return outcome;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    end_ = next_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_, delivered_, end_, ahead_;
  std::map<std::uint64_t, Outcome> waiting_;
};

void serve(Queue& queue, const std::function<ChunkWorker()>& make_worker) {
  ChunkWorker worker;
  for (std::uint64_t chunk = 0; queue.take(chunk);) {
    Outcome outcome;
    try {
      if (!worker) worker = make_worker();
      outcome.result = worker(chunk);
    } catch (...) {
      outcome.failure = std::current_exception();
    }
    queue.put(chunk, std::move(outcome));
  }
}

// Ends the threads' work, whatever ends the caller's.
struct Stop {
  Queue& queue;
  ~Stop() { queue.stop(); }
};

}  // namespace

void work_in_order(ChunkRange chunks, int threads, const std::function<ChunkWorker()>& make_worker,
                   const std::function<void(std::uint64_t, std::string)>& deliver) {
  Queue queue(chunks, threads);
  std::vector<std::jthread> pool;
  const Stop stop{queue};
  for (int thread = 0; thread < threads; ++thread) pool.emplace_back([&] { serve(queue, make_worker); });
  for (std::uint64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    Outcome outcome = queue.wait_for(chunk);
    if (outcome.failure) std::rethrow_exception(outcome.failure);
    deliver(chunk, std::move(outcome.result));
  }
}

}  // namespace dculab::sim
