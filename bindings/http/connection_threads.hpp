// The threads that serve connections, one each: as many as there are connections, up to a limit. Further connections
// wait for a thread.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dculab::http {

class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : most_(most) {}

  void enqueue(std::function<void()> serve) override;
  void shutdown() override;

 private:
  void work();

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool is_stopping_ = false;
};

}  // namespace dculab::http
