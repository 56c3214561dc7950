// What a server was doing over time, in a bounded number of intervals: when they run out, neighbours are merged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/serving_loop.hpp"
#include "core/units.hpp"

namespace dculab {

// Means over the steps in the interval, weighted by their durations.
struct TimelineInterval {
  Seconds begin, end;
  Seconds busy;        // of it, in steps
  double running = 0;  // sequences with KV blocks
  double waiting = 0;  // requests without
  double used_blocks = 0;
  double unused_slots = 0;  // share of the used blocks' slots that hold no token
  std::int64_t new_tokens = 0;
  int preemptions = 0;
};

// Two neighbours as one.
[[nodiscard]] TimelineInterval merged(const TimelineInterval& first, const TimelineInterval& next);

class ServingTimeline {
 public:
  // Precondition: most_intervals is even and at least 2.
  explicit ServingTimeline(std::size_t most_intervals) : most_intervals_(most_intervals) {}
  ServingTimeline() = default;

  void add(const ServedStep& step);

  // Servers that worked beside each other, as one: in equal parts of the time from the first to the last step, the sum
  // of who ran and waited and of the blocks they used, and the mean of how busy they were. A server alone: its own.
  // Precondition: not empty.
  [[nodiscard]] static ServingTimeline together(std::span<const ServingTimeline> servers);

  [[nodiscard]] const std::vector<TimelineInterval>& intervals() const { return intervals_; }
  // At any time; of several servers together, the sum of what each used at most.
  [[nodiscard]] int most_used_blocks() const { return most_used_blocks_; }

 private:
  void merge_neighbours();

  std::size_t most_intervals_ = 512;
  std::size_t steps_per_interval_ = 1;
  std::size_t steps_in_last_ = 0;
  int preemptions_seen_ = 0;
  int most_used_blocks_ = 0;
  std::vector<TimelineInterval> intervals_;
};

}  // namespace dculab
