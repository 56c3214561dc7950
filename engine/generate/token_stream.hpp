// The tokens of one request on their way from the thread that runs the engine to the one that waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/request.hpp"

namespace dculab::engine {

// What has come since one asked last.
struct StreamNews {
  std::vector<TokenId> tokens{};  // the one that stops the request included
  bool has_ended = false;         // nothing more will come
  // none: it was aborted, or the engine has stopped.
  FinishReason finish_reason = FinishReason::none;
  std::string failure{};      // why the engine has stopped
  int num_cached_tokens = 0;  // of the prompt, found by prefix caching; once there is a token
};

class TokenStream {
 public:
  explicit TokenStream(SequenceId id) : id_(id) {}

  [[nodiscard]] SequenceId id() const { return id_; }

  // Waits for news, at most so long; then there may be none.
  [[nodiscard]] StreamNews wait(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [this] { return !news_.tokens.empty() || news_.has_ended; });
    StreamNews news = news_;
    news_.tokens.clear();
    return news;
  }

  // For the engine. Never waits for whoever reads.
  void add(std::span<const TokenId> tokens, FinishReason finish_reason, int num_cached_tokens) {
    const std::lock_guard lock(mutex_);
    if (news_.has_ended) return;  // told to stop while the step ran
    news_.tokens.insert(news_.tokens.end(), tokens.begin(), tokens.end());
    news_.finish_reason = finish_reason;
    news_.has_ended = finish_reason != FinishReason::none;
    news_.num_cached_tokens = num_cached_tokens;
    changed_.notify_one();
  }
  void end(std::string failure) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(news_.has_ended, true)) return;
    news_.failure = std::move(failure);
    changed_.notify_one();
  }

 private:
  SequenceId id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  StreamNews news_;
};

}  // namespace dculab::engine
