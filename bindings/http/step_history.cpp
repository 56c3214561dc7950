#include "bindings/http/step_history.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace dculab::http {
namespace {

constexpr std::size_t kKept = 600;
constexpr std::size_t kMostWaiting = 256;  // steps to be priced; those behind are not

[[nodiscard]] SeenStep seen(const ServedStep& step, std::int64_t number) {
  SeenStep seen{.number = number, .begin = step.begin, .measured = step.end - step.begin};
  for (const SequenceSlice& sequence : step.plan.batch.sequences) {
    ++seen.sequences;
    seen.context_tokens += sequence.context_tokens();
    if (sequence.phase == Phase::prefill) seen.prefill_tokens += sequence.num_new_tokens;
  }
  return seen;
}

void count(const SeenStep& step, StepTotals& totals) {
  if (!step.predicted) return static_cast<void>(++totals.unpriced);
  ++totals.steps;
  totals.measured += step.measured;
  totals.predicted += *step.predicted;
}

}  // namespace

StepHistory::StepHistory(std::string machine, PriceBatch price)
    : machine_(std::move(machine)), price_(std::move(price)) {
  if (price_) thread_ = std::thread([this] { price_all(); });
}

StepHistory::~StepHistory() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StepHistory::add(const ServedStep& step) {
  const std::lock_guard lock(mutex_);
  SeenStep fresh = seen(step, next_number_++);
  if (!price_) return keep(fresh);
  Batch lengths;
  if (waiting_.size() < kMostWaiting) {
    lengths.sequences = step.plan.batch.sequences;
    lengths.filters_logits = step.plan.batch.filters_logits;
  }
  waiting_.push_back({fresh, std::move(lengths)});
  changed_.notify_one();
}

StepView StepHistory::view(std::int64_t since) const {
  const std::lock_guard lock(mutex_);
  StepView view{.machine = machine_, .steps = {}, .all = all_, .decodes = decodes_};
  std::ranges::copy_if(steps_, std::back_inserter(view.steps),
                       [since](const SeenStep& step) { return step.number > since; });
  return view;
}

void StepHistory::price_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (is_stopping_) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      if (!next.batch.sequences.empty()) next.step.predicted = price_(next.batch, next.step.begin);
    } catch (const std::exception&) {
      // A step that has no price is shown without one.
    }
    lock.lock();
    keep(next.step);
  }
}

// Holds the lock.
void StepHistory::keep(const SeenStep& step) {
  steps_.push_back(step);
  if (steps_.size() > kKept) steps_.pop_front();
  count(step, all_);
  if (step.prefill_tokens == 0) count(step, decodes_);
}

}  // namespace dculab::http
