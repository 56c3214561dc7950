// Work that its caller may call off. Who runs it on a thread gives that thread a Cancellation; what takes long asks now
// and then whether to stop. A program that cancels nothing pays for reading one pointer.
#pragma once

#include <atomic>
#include <exception>

namespace dculab {

// Ends cancelled work. Not a std::runtime_error: nothing is wrong, and no handler must report it as bad input.
class Cancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

// May be cancelled by any thread, once.
class Cancellation {
 public:
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_cancelled_ = false;
};

// This thread's; null: its work is not cancelled.
[[nodiscard]] const Cancellation* current_cancellation();

// For as long as it lives, this thread's work is cancelled by `cancellation`, which may be null and outlives it.
class CancelledBy {
 public:
  explicit CancelledBy(const Cancellation* cancellation);
  ~CancelledBy();
  CancelledBy(const CancelledBy&) = delete;
  CancelledBy& operator=(const CancelledBy&) = delete;

 private:
  const Cancellation* before_;
};

// Throws Cancelled if this thread's work was cancelled. Called for every step that is priced or served: many times in a
// tenth of a second.
void stop_if_cancelled();

}  // namespace dculab
