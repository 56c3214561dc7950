#include "kernels/cpu/thread_pool.hpp"

#include <exception>

namespace dculab::kernels::cpu {
namespace {

// How often to look before going to sleep. About 50 us on current cores: longer than the gap between two kernels of a
// step. A team with a CPU for each worker holds out eight times as long, shorter than a scheduler tick still: whoever
// sleeps and wakes to find another process on its CPU may wait for some ticks, even if that has the lowest priority.
constexpr int kSpins = 2000;
constexpr int kSpinsWhenPlaced = 8 * kSpins;

// The first value of the epoch that workers see: their number is known, and so are their shares of the CPUs.
constexpr std::uint32_t kTeamIsComplete = 1;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Returns once `value` differs from `old`: looks `spins` times, then sleeps in the kernel.
template <typename T>
void await_change(const std::atomic<T>& value, T old, int spins) {
  for (int spin = 0; spin < spins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads, CpuShare share) : cpus_(share), shares_(static_cast<std::size_t>(num_threads)) {
  if (num_threads == 1) {  // a thread alone need not be bound, but for other teams
    is_bound_ = share.of > 1 && bind_to_share(0, 1, cpus_);
    return;
  }
  threads_.reserve(shares_.size() - 1);
  try {
    for (int worker = 1; worker < num_threads; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
  } catch (const std::exception&) {
    // No further thread, or no memory for one: those that there are do the work.
  }
  if (threads_.empty()) return;
  is_bound_ = bind_to_share(0, this->num_threads(), cpus_);
  spins_ = is_bound_ ? kSpinsWhenPlaced : kSpins;
  epoch_.exchange(kTeamIsComplete, std::memory_order_acq_rel);
  epoch_.notify_all();
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (is_bound_) release_binding();
}

void ThreadPool::run(const Job& job) {
  const int workers = num_threads();
  if (workers == 1 || job.num_tasks <= 1) {
    for (int task = 0; task < job.num_tasks; ++task) job.invoke(job.body, task, 0);
    return;
  }
  job_ = job;
  job_.number = epoch_.load(std::memory_order_relaxed) + 1;
  for (int worker = 0; worker < workers; ++worker) {
    Share& share = shares_[static_cast<std::size_t>(worker)];
    const auto bound = [&](int w) { return static_cast<int>(std::int64_t{job.num_tasks} * w / workers); };
    share.next.store(bound(worker), std::memory_order_relaxed);
    share.end = bound(worker + 1);
  }
  const bool all_must_come = job.distribution == Distribution::fixed;
  gate_.store(kOpen + (all_must_come ? kExpected * static_cast<std::uint32_t>(workers - 1) : 0),
              std::memory_order_release);
  // An exchange, not a store: notify_all() then reads how many wait, and must not read that before.
  epoch_.exchange(job_.number, std::memory_order_acq_rel);
  epoch_.notify_all();
  work(0);
  if (all_must_come) await_empty();
  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  await_empty();
}

// Returns once no worker is inside or expected.
void ThreadPool::await_empty() const {
  for (std::uint32_t gate = gate_.load(std::memory_order_acquire); (gate & ~kOpen) != 0;
       gate = gate_.load(std::memory_order_acquire)) {
    await_change(gate_, gate, spins_);
  }
}

// False when the newest job is over.
bool ThreadPool::enter() {
  std::uint32_t gate = gate_.load(std::memory_order_relaxed);
  while ((gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + kInside, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void ThreadPool::leave(std::uint32_t left) {
  const std::uint32_t gate = gate_.fetch_sub(left, std::memory_order_acq_rel) - left;
  if ((gate & ~kOpen) == 0) gate_.notify_one();
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
  await_change(epoch_, std::uint32_t{0}, kSpins);
  bind_to_share(worker, num_threads(), cpus_);
  std::uint32_t seen = kTeamIsComplete;
  for (;;) {
    await_change(epoch_, seen, spins_);
    const std::uint32_t newest = epoch_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!enter()) {
      seen = newest;
      continue;
    }
    // A job may be entered before epoch_ tells of it, and so be met twice.
    const bool is_new = job_.number != seen;
    seen = job_.number;
    if (is_new) work(worker);
    leave(is_new && job_.distribution == Distribution::fixed ? kInside + kExpected : kInside);
  }
}

}  // namespace dculab::kernels::cpu
