#include "bindings/http/connection_threads.hpp"

#include <system_error>
#include <utility>

namespace dculab::http {

void ConnectionThreads::enqueue(std::function<void()> serve) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(serve));
  if (waiting_.size() > idle_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;  // else those that there are serve it
    }
  }
  changed_.notify_one();
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ConnectionThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return !waiting_.empty() || is_stopping_; });
    --idle_;
    if (waiting_.empty()) return;
    const std::function<void()> serve = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    serve();
    lock.lock();
  }
}

}  // namespace dculab::http
