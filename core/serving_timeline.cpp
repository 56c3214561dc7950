#include "core/serving_timeline.hpp"

#include <algorithm>
#include <cmath>

namespace dculab {
namespace {

// Slots of used blocks that hold no token once the step is done. Sequences that share blocks count their tokens each:
// then there are none.
[[nodiscard]] double unused_share(const ServedStep& step, double used_slots) {
  const auto added =
      static_cast<double>(step.plan.batch.num_tokens()) / step.scheduler.tokens_per_slot(step.plan.batch.head_set);
  const double tokens = static_cast<double>(step.scheduler.num_tokens_in_cache()) + added;
  return used_slots > 0 ? std::max(0.0, 1 - tokens / used_slots) : 0;
}

[[nodiscard]] double weighted(double a, Seconds weight_a, double b, Seconds weight_b) {
  const Seconds total = weight_a + weight_b;
  return total > Seconds{} ? (a * weight_a + b * weight_b) / total : (a + b) / 2;
}

constexpr std::size_t kParts = 128;

// What all servers together did in one part of the time. Counts are whole only once they are summed up.
struct Part {
  Seconds busy;
  double running = 0, waiting = 0, used_blocks = 0, unused_blocks = 0, new_tokens = 0, preemptions = 0;
};

// Spreads an interval over the parts of `length` each, the first of which begins at `begin`.
void spread(const TimelineInterval& interval, Seconds begin, Seconds length, std::vector<Part>& parts) {
  const double first = (interval.begin - begin) / length;
  const double last = (interval.end - begin) / length;
  for (auto index = static_cast<std::size_t>(first); index < parts.size(); ++index) {
    const double overlap = std::min(last, static_cast<double>(index + 1)) - std::max(first, static_cast<double>(index));
    if (overlap <= 0) break;
    const double share = overlap / (last - first);        // of the interval
    const double steps = interval.busy / length * share;  // of the part, spent in the interval's steps
    Part& part = parts[index];
    part.busy += interval.busy * share;
    part.running += interval.running * steps;
    part.waiting += interval.waiting * steps;
    part.used_blocks += interval.used_blocks * steps;
    part.unused_blocks += interval.used_blocks * interval.unused_slots * steps;
    part.new_tokens += static_cast<double>(interval.new_tokens) * share;
    part.preemptions += interval.preemptions * share;
  }
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

ServingTimeline ServingTimeline::together(std::span<const ServingTimeline> servers) {
  if (servers.size() == 1) return servers.front();
  ServingTimeline all;
  std::vector<TimelineInterval> every;
  for (const ServingTimeline& server : servers) {
    every.insert(every.end(), server.intervals_.begin(), server.intervals_.end());
    all.most_used_blocks_ += server.most_used_blocks_;
  }
  if (every.empty()) return all;
  const Seconds begin = std::ranges::min(every, {}, &TimelineInterval::begin).begin;
  const Seconds length = (std::ranges::max(every, {}, &TimelineInterval::end).end - begin) / double{kParts};
  std::vector<Part> parts(kParts);
  for (const TimelineInterval& interval : every)
    if (interval.end > interval.begin) spread(interval, begin, length, parts);
  double tokens = 0, preemptions = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const Part& part = parts[index];
    const auto rounded = [](double& sum, double more) {
      const std::int64_t before = std::llround(sum);
      return std::llround(sum += more) - before;
    };
    all.intervals_.push_back({.begin = begin + static_cast<double>(index) * length,
                              .end = begin + static_cast<double>(index + 1) * length,
                              .busy = part.busy / static_cast<double>(servers.size()),
                              .running = part.running,
                              .waiting = part.waiting,
                              .used_blocks = part.used_blocks,
                              .unused_slots = part.used_blocks > 0 ? part.unused_blocks / part.used_blocks : 0,
                              .new_tokens = rounded(tokens, part.new_tokens),
                              .preemptions = static_cast<int>(rounded(preemptions, part.preemptions))});
  }
  return all;
}

void ServingTimeline::merge_neighbours() {
  for (std::size_t index = 0; index < intervals_.size() / 2; ++index)
    intervals_[index] = merged(intervals_[2 * index], intervals_[2 * index + 1]);
  intervals_.resize(intervals_.size() / 2);
  steps_per_interval_ *= 2;
}

}  // namespace dculab
