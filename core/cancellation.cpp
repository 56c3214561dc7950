#include "core/cancellation.hpp"

#include <utility>

namespace dculab {
namespace {

thread_local const Cancellation* of_this_thread = nullptr;

}  // namespace

const Cancellation* current_cancellation() { return of_this_thread; }

CancelledBy::CancelledBy(const Cancellation* cancellation) : before_(std::exchange(of_this_thread, cancellation)) {}

CancelledBy::~CancelledBy() { of_this_thread = before_; }

void stop_if_cancelled() {
  if (of_this_thread != nullptr && of_this_thread->is_cancelled()) throw Cancelled();
}

}  // namespace dculab
