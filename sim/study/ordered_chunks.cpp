#include "sim/study/ordered_chunks.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/cancellation.hpp"

namespace dculab::sim {
namespace {

constexpr std::uint64_t kAhead = 4;  // chunks a thread, so that no thread waits for a slow one

struct Outcome {
  std::string result;
  std::exception_ptr failure;
};

class Queue {
 public:
  Queue(ChunkRange chunks, int threads)
      : next_(chunks.begin),
        delivered_(chunks.begin),
        end_(chunks.end),
        waiting_(kAhead * static_cast<std::uint64_t>(threads)) {}

  // False when there is nothing left to do.
  [[nodiscard]] bool take(std::uint64_t& chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return next_ >= end_ || next_ < delivered_ + waiting_.size(); });
    if (next_ >= end_) return false;
    chunk = next_++;
    return true;
  }

  void put(std::uint64_t chunk, Outcome outcome) noexcept {
    const std::lock_guard lock(mutex_);
    waiting(chunk) = std::move(outcome);
    changed_.notify_all();
  }

  [[nodiscard]] Outcome wait_for(std::uint64_t chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting(chunk).has_value(); });
    Outcome outcome = *std::exchange(waiting(chunk), std::nullopt);
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
  [[nodiscard]] std::optional<Outcome>& waiting(std::uint64_t chunk) { return waiting_[chunk % waiting_.size()]; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_, delivered_, end_;
  std::vector<std::optional<Outcome>> waiting_;  // chunks from delivered_ on, which wait to be delivered
};

void serve(Queue& queue, const std::function<ChunkWorker()>& make_worker) {
  ChunkWorker worker;
  for (std::uint64_t chunk = 0; queue.take(chunk);) {
    Outcome outcome;
    try {
      stop_if_cancelled();
      if (!worker) worker = make_worker();
      outcome.result = worker(chunk);
    } catch (...) {
      outcome.failure = std::current_exception();
    }
    queue.put(chunk, std::move(outcome));
  }
}

// As many threads as the system grants.
void start(std::vector<std::jthread>& pool, int threads, const std::function<void()>& work) {
  try {
    while (static_cast<int>(pool.size()) < threads) pool.emplace_back(work);
  } catch (const std::system_error&) {  // those that run do the work
  } catch (const std::bad_alloc&) {
  }
}

void work_alone(ChunkRange chunks, const std::function<ChunkWorker()>& make_worker,
                const std::function<void(std::uint64_t, std::string)>& deliver) {
  if (chunks.begin >= chunks.end) return;
  const ChunkWorker worker = make_worker();
  for (std::uint64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    stop_if_cancelled();
    deliver(chunk, worker(chunk));
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
  if (threads > 1)
    start(pool, threads, [&, cancellation = current_cancellation()] {
      const CancelledBy whole(cancellation);
      serve(queue, make_worker);
    });
  if (pool.empty()) return work_alone(chunks, make_worker, deliver);
  for (std::uint64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    Outcome outcome = queue.wait_for(chunk);
    if (outcome.failure) std::rethrow_exception(outcome.failure);
    deliver(chunk, std::move(outcome.result));
  }
}

}  // namespace dculab::sim
