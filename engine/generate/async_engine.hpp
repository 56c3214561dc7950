// A model that serves requests which other threads submit while it runs. One thread runs the steps; requests and aborts
// reach it through a queue between two steps, and each request's tokens leave it through a TokenStream. It waits for
// nobody: who reads slowly keeps no other request waiting. The name is vLLM's (AsyncLLM, in front of its EngineCore).
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/serving_loop.hpp"
#include "engine/generate/engine_core.hpp"
#include "engine/generate/open_model.hpp"
#include "engine/generate/token_stream.hpp"
#include "engine/generate/wall_clock.hpp"

namespace dculab::engine {

// Between two steps.
struct AsyncEngineState {
  int running = 0;            // requests that hold KV blocks
  int waiting = 0;            // all others that have not ended
  double kv_cache_usage = 0;  // share of the KV blocks
  int num_preemptions = 0;    // since the beginning
  std::int64_t num_steps = 0;
};

class AsyncEngine {
 public:
  // `make` opens the model on the engine's own thread, with `options`; what it throws is thrown here. At most
  // `most_requests` wait or run at a time. `watch` is called on the engine's thread: of a step, it begins where the one
  // before ended, unless the engine waited for a request, so that what the host does in between is part of it; and
  // `on_failure` too, once, if it stops because something was thrown.
  AsyncEngine(std::function<OpenModel()> make, const EngineOptions& options, int most_requests,
              ServingCallbacks watch = {}, std::function<void()> on_failure = {});
  ~AsyncEngine();
  AsyncEngine(const AsyncEngine&) = delete;
  AsyncEngine& operator=(const AsyncEngine&) = delete;

  // Why the request can never be served, or nothing.
  [[nodiscard]] std::optional<std::string> refusal(const Request& request) const {
    return core_->scheduler().refusal(request);
  }

  // Takes a request in, whose id and arrival it sets; null where as many as it may hold are there, or once it has
  // stopped. Precondition: refusal(request) is empty, and it asks for one sample.
  [[nodiscard]] std::shared_ptr<TokenStream> submit(Request request);

  // The request's blocks come back before the next step. Nothing happens where it has ended.
  void abort(const TokenStream& stream);

  [[nodiscard]] AsyncEngineState state() const;
  [[nodiscard]] const ModelExecutor& executor() const { return *model_.executor; }
  [[nodiscard]] int most_requests() const { return most_requests_; }

  // Ends the streams of all requests with this failure, and the thread. May be called more than once.
  void stop(const std::string& failure);

  // What stopped the engine; null where nothing did.
  [[nodiscard]] std::exception_ptr thrown() const;

 private:
  using Order = std::variant<Request, SequenceId>;  // to be served, or aborted

  void serve();
  void run();
  [[nodiscard]] bool take_orders(bool is_idle, std::vector<Order>& orders);
  void follow(Order order);
  void pass_on(const Sequence& sequence, int count);
  void finish(const Sequence& sequence);
  void remove(SequenceId id);
  void note_state();
  void see(const ServedStep& step);

  EngineOptions options_;
  int most_requests_;
  ServingCallbacks watch_;
  std::function<void()> on_failure_;
  WallClock clock_;
  OpenModel model_;
  std::unique_ptr<EngineCore> core_;
  Seconds step_end_, woken_;  // of the last step; when the engine last found work again

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Order> orders_;
  // Of requests that have not ended.
  std::unordered_map<SequenceId, std::shared_ptr<TokenStream>> streams_;
  AsyncEngineState state_;
  SequenceId next_id_ = 0;
  bool is_open_ = false;  // the model, or that has failed
  bool is_stopping_ = false;
  std::string failure_;
  std::exception_ptr thrown_;
  std::thread thread_;
};

}  // namespace dculab::engine
