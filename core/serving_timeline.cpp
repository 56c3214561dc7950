#include "core/serving_timeline.hpp"

#include <algorithm>

namespace dculab {
namespace {

// Slots of used blocks that hold no token once the step is done. Sequences that share blocks count their tokens each:
// then there are none.
[[nodiscard]] double unused_share(const ServedStep& step, double used_slots) {
  const auto tokens = static_cast<double>(step.scheduler.num_tokens_in_cache() + step.plan.batch.num_tokens());
  return used_slots > 0 ? std::max(0.0, 1 - tokens / used_slots) : 0;
}

[[nodiscard]] double weighted(double a, Seconds weight_a, double b, Seconds weight_b) {
  const Seconds total = weight_a + weight_b;
  return total > Seconds{} ? (a * weight_a + b * weight_b) / total : (a + b) / 2;
}

}  // namespace

TimelineInterval merged(const TimelineInterval& first, const TimelineInterval& next) {
  const auto mean = [&](double TimelineInterval::*figure) {
    return weighted(first.*figure, first.busy, next.*figure, next.busy);
  };
  return {.begin = first.begin,
          .end = next.end,
          .busy = first.busy + next.busy,
          .running = mean(&TimelineInterval::running),
          .waiting = mean(&TimelineInterval::waiting),
          .used_blocks = mean(&TimelineInterval::used_blocks),
          .unused_slots = mean(&TimelineInterval::unused_slots),
          .new_tokens = first.new_tokens + next.new_tokens,
          .preemptions = first.preemptions + next.preemptions};
}

void ServingTimeline::add(const ServedStep& step) {
  const BlockPool& pool = step.scheduler.pool();
  const int used = pool.num_blocks() - pool.num_free();
  most_used_blocks_ = std::max(most_used_blocks_, used);
  TimelineInterval now{.begin = step.begin, .end = step.end, .busy = step.end - step.begin};
  now.running = step.scheduler.num_running();
  now.waiting = step.scheduler.num_waiting();
  now.used_blocks = used;
  now.unused_slots = unused_share(step, static_cast<double>(used) * pool.block_size());
  now.new_tokens = step.plan.batch.num_tokens();
  now.preemptions = step.scheduler.num_preemptions() - preemptions_seen_;
  preemptions_seen_ = step.scheduler.num_preemptions();
  if (steps_in_last_ > 0 && steps_in_last_ < steps_per_interval_) {
    intervals_.back() = merged(intervals_.back(), now);
    ++steps_in_last_;
    return;
  }
  if (intervals_.size() == most_intervals_) merge_neighbours();
  intervals_.push_back(now);
  steps_in_last_ = 1;
}

void ServingTimeline::merge_neighbours() {
  for (std::size_t index = 0; index < intervals_.size() / 2; ++index)
    intervals_[index] = merged(intervals_[2 * index], intervals_[2 * index + 1]);
  intervals_.resize(intervals_.size() / 2);
  steps_per_interval_ *= 2;
}

}  // namespace dculab
