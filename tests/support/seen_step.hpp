// What a step of a serving loop looked like, so that two schedules can be compared.
#pragma once

#include <vector>

#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"

namespace dculab::test {

struct SeenSlice {
  SequenceId id = 0;
  Phase phase = Phase::decode;
  int computed = 0, new_tokens = 0, unwritten = 0;

  friend bool operator==(const SeenSlice&, const SeenSlice&) = default;
};

struct SeenStep {
  std::vector<SeenSlice> slices;
  std::vector<std::vector<BlockId>> block_tables;  // of each slice
  int running = 0, waiting = 0, free_blocks = 0, free_host_blocks = 0, preemptions = 0;
  SwapCounts swaps;

  friend bool operator==(const SeenStep&, const SeenStep&) = default;
};

inline SeenStep seen(const ServedStep& step) {
  SeenStep result{{},
                  step.plan.batch.block_tables,
                  step.scheduler.num_running(),
                  step.scheduler.num_waiting(),
                  step.scheduler.pool().num_free(),
                  step.scheduler.host_pool().num_free(),
                  step.scheduler.num_preemptions(),
                  step.scheduler.swaps()};
  for (const SequenceSlice& slice : step.plan.batch.sequences)
    result.slices.push_back(
        {slice.id, slice.phase, slice.num_computed_tokens, slice.num_new_tokens, slice.num_unwritten_tokens});
  return result;
}

}  // namespace dculab::test
