#include "engine/generate/async_engine.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace dculab::engine {

AsyncEngine::AsyncEngine(std::function<OpenModel()> make, const EngineOptions& options, int most_requests,
                         ServingCallbacks watch, std::function<void()> on_failure)
    : options_(options), most_requests_(most_requests), watch_(std::move(watch)), on_failure_(std::move(on_failure)) {
  thread_ = std::thread([this, open = std::move(make)] {
    try {
      model_ = open();
      core_ = std::make_unique<EngineCore>(
          model_, options_, clock_, RequestRecords::drop,
          ServingCallbacks{.on_tokens = [this](const Sequence& sequence, int count) { pass_on(sequence, count); },
                           .on_finished = [this](const Sequence& sequence) { finish(sequence); },
                           .on_step = [this](const ServedStep& step) { see(step); }});
    } catch (...) {
      const std::lock_guard lock(mutex_);
      thrown_ = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
    }
    changed_.notify_all();
    if (!thrown_) serve();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_open_; });
  if (!thrown_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(thrown_);
}

AsyncEngine::~AsyncEngine() {
  stop("the server has stopped");
  thread_.join();
}

std::shared_ptr<TokenStream> AsyncEngine::submit(Request request) {
  const std::lock_guard lock(mutex_);
  if (is_stopping_ || std::ssize(streams_) >= most_requests_) return nullptr;
  request.id = next_id_++;
  request.arrival = clock_.now();
  auto stream = std::make_shared<TokenStream>(request.id);
  streams_.emplace(request.id, stream);
  orders_.emplace_back(std::move(request));
  changed_.notify_all();
  return stream;
}

void AsyncEngine::abort(const TokenStream& stream) {
  const std::lock_guard lock(mutex_);
  if (!streams_.contains(stream.id())) return;
  orders_.emplace_back(stream.id());
  changed_.notify_all();
}

AsyncEngineState AsyncEngine::state() const {
  const std::lock_guard lock(mutex_);
  AsyncEngineState state = state_;
  state.waiting = std::max(0, static_cast<int>(streams_.size()) - state.running);
  return state;
}

void AsyncEngine::stop(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_stopping_, true)) return;
  failure_ = failure;
  for (const auto& [id, stream] : streams_) stream->end(failure_);
  changed_.notify_all();
}

std::exception_ptr AsyncEngine::thrown() const {
  const std::lock_guard lock(mutex_);
  return thrown_;
}

void AsyncEngine::serve() {
  try {
    run();
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(mutex_);
      thrown_ = std::current_exception();
    }
    stop(std::string("the engine has failed: ") + error.what());
    if (on_failure_) on_failure_();
  }
}

void AsyncEngine::run() {
  std::vector<Order> orders;
  for (bool is_idle = false; take_orders(is_idle, orders);) {
    for (Order& order : orders) follow(std::move(order));
    orders.clear();
    is_idle = !core_->loop().step();
    note_state();
  }
}

// Waits for some where there is nothing else to do. False when the engine is to stop.
bool AsyncEngine::take_orders(bool is_idle, std::vector<Order>& orders) {
  std::unique_lock lock(mutex_);
  if (is_idle) {
    changed_.wait(lock, [this] { return !orders_.empty() || is_stopping_; });
    woken_ = clock_.now();
  }
  std::swap(orders, orders_);
  return !is_stopping_;
}

void AsyncEngine::follow(Order order) {
  if (const auto* id = std::get_if<SequenceId>(&order)) {
    if (core_->loop().abort(*id)) remove(*id);
    return;
  }
  Request& request = std::get<Request>(order);
  const SequenceId id = request.id;
  if (const auto reason = core_->loop().submit(std::move(request))) {
    const std::lock_guard lock(mutex_);
    streams_.at(id)->end(*reason);
    streams_.erase(id);
  }
}

void AsyncEngine::pass_on(const Sequence& sequence, int count) {
  std::shared_ptr<TokenStream> stream;
  {
    const std::lock_guard lock(mutex_);
    stream = streams_.at(sequence.request.id);
  }
  if (watch_.on_tokens) watch_.on_tokens(sequence, count);
  stream->add(std::span(sequence.tokens).last(static_cast<std::size_t>(count)), sequence.finish_reason,
              sequence.num_cached_tokens);
}

void AsyncEngine::finish(const Sequence& sequence) {
  if (watch_.on_finished) watch_.on_finished(sequence);
  remove(sequence.request.id);
}

// It has ended.
void AsyncEngine::remove(SequenceId id) {
  const std::lock_guard lock(mutex_);
  const auto place = streams_.find(id);
  if (place == streams_.end()) return;
  place->second->end("aborted");  // does nothing where its last token has said so
  streams_.erase(place);
}

void AsyncEngine::see(const ServedStep& step) {
  if (!watch_.on_step) return;
  ServedStep whole = step;
  whole.begin = std::max(step_end_, woken_);
  step_end_ = step.end;
  watch_.on_step(whole);
}

void AsyncEngine::note_state() {
  const Scheduler& scheduler = core_->scheduler();
  const BlockPool& pool = scheduler.pool();
  const std::lock_guard lock(mutex_);
  state_.running = scheduler.num_running();
  state_.kv_cache_usage = static_cast<double>(pool.num_blocks() - pool.num_free()) / pool.num_blocks();
  state_.num_preemptions = scheduler.num_preemptions();
  state_.num_steps = core_->loop().report().num_steps;
}

}  // namespace dculab::engine
