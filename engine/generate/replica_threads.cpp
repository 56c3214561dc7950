#include "engine/generate/replica_threads.hpp"

#include <utility>

namespace dculab::engine {

ReplicaThreads::ReplicaThreads(int count, const Make& make)
    : thrown_(static_cast<std::size_t>(count)), models_(static_cast<std::size_t>(count)) {
  threads_.reserve(static_cast<std::size_t>(count));
  try {
    for (int replica = 0; replica < count; ++replica) threads_.emplace_back([this, replica] { serve(replica); });
    // One after the other: each asks how much memory is free.
    for (int turn = 0; turn < count; ++turn) {
      begin([&](int replica) {
        if (replica == turn) models_[static_cast<std::size_t>(replica)] = make({.index = replica, .of = count});
      });
      finish();
    }
  } catch (...) {
    stop();
    throw;
  }
}

ReplicaThreads::~ReplicaThreads() { stop(); }

void ReplicaThreads::run(const Work& work, const std::function<void()>& meanwhile) {
  begin([&](int replica) { work(replica, models_[static_cast<std::size_t>(replica)]); });
  std::exception_ptr thrown_here;
  try {
    if (meanwhile) meanwhile();
  } catch (...) {
    thrown_here = std::current_exception();
  }
  try {
    finish();
  } catch (...) {
    if (!thrown_here) throw;
  }
  if (thrown_here) std::rethrow_exception(thrown_here);
}

void ReplicaThreads::begin(Task task) {
  const std::lock_guard lock(mutex_);
  task_ = std::move(task);
  ++number_;
  running_ = count();
  changed_.notify_all();
}

void ReplicaThreads::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return running_ == 0; });
  for (std::exception_ptr& thrown : thrown_)
    if (const std::exception_ptr first = std::exchange(thrown, nullptr)) {
      for (std::exception_ptr& other : thrown_) other = nullptr;
      std::rethrow_exception(first);
    }
}

void ReplicaThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ReplicaThreads::serve(int replica) {
  const auto index = static_cast<std::size_t>(replica);
  std::uint64_t seen = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || number_ != seen; });
    if (number_ == seen) break;
    seen = number_;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      task_(replica);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    thrown_[index] = thrown;
    --running_;
    changed_.notify_all();
  }
  models_[index].drafts = {};  // here, where they were made: their team is bound to this thread
  models_[index].few_heads.reset();
  models_[index].executor.reset();
}

}  // namespace dculab::engine
