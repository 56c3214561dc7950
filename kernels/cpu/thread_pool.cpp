#include "kernels/cpu/thread_pool.hpp"

#include "kernels/cpu/thread_placement.hpp"

namespace dculab::kernels::cpu {
namespace {

// About 50 us on current cores: longer than the gap between two kernels of a step, shorter than a scheduler tick.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Returns once `value` differs from `old`: spins first, then sleeps in the kernel.
template <typename T>
void await_change(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : shares_(static_cast<std::size_t>(num_threads)) {
  if (num_threads == 1) return;
  bind_to_share(0, num_threads);
  threads_.reserve(shares_.size() - 1);
  for (int worker = 1; worker < num_threads; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (!threads_.empty()) release_binding();
}

void ThreadPool::run(const Job& job) {
  const int workers = num_threads();
  if (workers == 1 || job.num_tasks <= 1) {
    for (int task = 0; task < job.num_tasks; ++task) job.invoke(job.body, task, 0);
    return;
  }
  job_ = job;
  for (int worker = 0; worker < workers; ++worker) {
    Share& share = shares_[static_cast<std::size_t>(worker)];
    const auto bound = [&](int w) { return static_cast<int>(std::int64_t{job.num_tasks} * w / workers); };
    share.next.store(bound(worker), std::memory_order_relaxed);
    share.end = bound(worker + 1);
  }
  busy_.store(workers - 1, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  work(0);
  for (int busy = busy_.load(std::memory_order_acquire); busy != 0; busy = busy_.load(std::memory_order_acquire)) {
    await_change(busy_, busy);
  }
}

void ThreadPool::work(int worker) {
  const int workers = num_threads();
  const int victims = job_.distribution == Distribution::dynamic ? workers : 1;
  for (int i = 0; i < victims; ++i) {
    Share& share = shares_[static_cast<std::size_t>((worker + i) % workers)];
    for (int task = share.next.fetch_add(1, std::memory_order_relaxed); task < share.end;
         task = share.next.fetch_add(1, std::memory_order_relaxed)) {
      job_.invoke(job_.body, task, worker);
    }
  }
}

void ThreadPool::serve(int worker) {
  bind_to_share(worker, num_threads());
  std::uint32_t seen = 0;
  for (;;) {
    await_change(epoch_, seen);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) return;
    work(worker);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace dculab::kernels::cpu
