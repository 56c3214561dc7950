// Runs a step plan: the CPU engine, a GPU engine or the simulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/step_plan.hpp"
#include "core/units.hpp"

namespace dculab {

struct StepResult {
  Seconds duration;                   // of the whole step, host work included
  std::vector<Seconds> op_durations;  // [plan.ops.size()], all `count` executions of each op together;
                                      // empty when the executor was told not to time ops
  double cold_share = 0;              // Batch's, where the executor itself says how cold the step found the caches
};

// The contents of a KV block that a step needs elsewhere before it runs: for copy-on-write in another block of the
// device, for preemption by swap in one of the host's, or back from there.
struct BlockCopy {
  BlockId source = 0;
  BlockId destination = 0;
};

// The contents of one slot (block * block_size + offset) that are needed in another.
struct SlotMove {
  std::int64_t source = 0;
  std::int64_t destination = 0;

  friend bool operator==(const SlotMove&, const SlotMove&) = default;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // Duplicates KV blocks, in order, in all layers.
  virtual void copy_blocks(std::span<const BlockCopy> copies) = 0;

  // Copies K and V of single tokens in all layers, in order: the accepted path of a tree of drafts moves up.
  virtual void move_slots(std::span<const SlotMove>) { throw std::logic_error("this executor has no trees of drafts"); }

  // Moves KV blocks in all layers: all of `out` to the host's blocks, then all of `in` back from them. For executors
  // that were given host blocks.
  virtual void swap_blocks(std::span<const BlockCopy> /*out*/, std::span<const BlockCopy> /*in*/) {
    throw std::logic_error("this executor has no KV blocks in host memory");
  }

  // The contents of KV blocks in all layers, on their way from one executor to another of the same model and KV cache:
  // written block after block to `to`, or read from where read_blocks wrote them. Bytes of a block: bytes_per_block().
  [[nodiscard]] virtual std::size_t bytes_per_block() const { return 0; }
  virtual void read_blocks(std::span<const BlockId>, std::span<std::byte> /*to*/) {
    throw std::logic_error("this executor hands no KV blocks over");
  }
  virtual void write_blocks(std::span<const BlockId>, std::span<const std::byte> /*from*/) {
    throw std::logic_error("this executor takes no KV blocks over");
  }

  // The sequence has ended: what is kept of it beside its KV blocks may go.
  virtual void forget(SequenceId) {}

  // Runs or prices one step.
  virtual StepResult run(const StepPlan& plan) = 0;
};

}  // namespace dculab
