#include "bindings/python/long_call.hpp"

#include <nanobind/stl/string.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/cancellation.hpp"

namespace nb = nanobind;

namespace dculab::python {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};

struct News {
  std::string label;
  double share = 0;
};

// What the thread that works and the one that waits share.
class Call {
 public:
  void tell(const std::string& label, double share) {
    const std::lock_guard lock(mutex_);
    news_ = {label, share};
  }

  void end(present::Report report, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
    failure_ = std::move(failure);
    has_ended_ = true;
    changed_.notify_all();
  }

  [[nodiscard]] bool has_ended_soon() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kBetweenLooks, [this] { return has_ended_; });
  }

  // The latest, once.
  [[nodiscard]] std::optional<News> take_news() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, std::nullopt);
  }

  [[nodiscard]] present::Report take_report() {
    if (failure_) std::rethrow_exception(failure_);
    return std::move(report_);
  }

  Cancellation cancellation;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<News> news_;
  present::Report report_{};
  std::exception_ptr failure_;
  bool has_ended_ = false;
};

// A thread that does the work. Its destructor cancels what is left of the work and waits for the thread; the caller
// does not hold the GIL then.
class Worker {
 public:
  Worker(Call& call, const std::function<present::Report(const Progress&)>& work)
      : call_(call), thread_([&call, &work] {
          const CancelledBy whole(&call.cancellation);
          try {
            call.end(work([&call](const std::string& label, double share) { call.tell(label, share); }), nullptr);
          } catch (...) {
            call.end({}, std::current_exception());
          }
        }) {}
  ~Worker() {
    call_.cancellation.cancel();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  Call& call_;
  std::thread thread_;
};

// What Python has to do meanwhile. Throws nb::python_error.
void look(Call& call, const nb::object& on_progress) {
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (on_progress.is_none()) return;
  if (const auto news = call.take_news()) on_progress(news->label, news->share);
}

}  // namespace

present::Report call_interruptibly(const std::function<present::Report(const Progress&)>& work,
                                   const nb::object& on_progress) {
  Call call;
  {
    const nb::gil_scoped_release unlocked;
    const Worker worker(call, work);
    while (!call.has_ended_soon()) look(call, on_progress);
  }
  return call.take_report();
}

}  // namespace dculab::python
