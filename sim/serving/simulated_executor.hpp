// An executor that runs nothing: it answers how long a step would take on a machine.
//
// Swapping a KV block copies K and V of each layer with a transfer of their own, as vLLM's swap_blocks does (one
// cudaMemcpyAsync each, csrc/cache_kernels.cu), so small blocks do not reach the link's bandwidth:
//
//   time = blocks * 2 * layers * kernel_launch + bytes / host_link
//
// Pauses lengthen steps as often and as long as they did when requests were served on the machine (sim/serving/pauses).
//
// host_link counts as its peak. A CPU's host memory is its own: bytes are read and written in DRAM, and no transfer
// is started.
#pragma once

#include <span>

#include "core/engine_options.hpp"
#include "core/executor.hpp"
#include "model/model_shape.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/cache_pollution.hpp"
#include "sim/serving/pauses.hpp"

namespace dculab::sim {

// Whether it is known what carries a swapped block: a GPU's host_link.
[[nodiscard]] bool can_swap(const Machine& machine);

class SimulatedExecutor : public Executor {
 public:
  // Preconditions: problems() of all three are empty.
  SimulatedExecutor(Machine machine, const ModelShape& model, const EngineOptions& options);

  // Each copy reads and writes a block of all layers in DRAM; the next step waits for it.
  void copy_blocks(std::span<const BlockCopy> copies) override;

  // The next step waits for them. Precondition: can_swap(machine).
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override;

  // The time at which the next step begins, where others use the machine's caches too. Without it a step finds them as
  // cold as its batch says.
  void begin_at(Seconds now) { cold_share_ = warmth_.cold_share(now); }

  // Bytes of weights that other steps touch between two of this executor's: those of a draft model.
  void set_beside(Bytes bytes) { beside_ = bytes; }

  StepResult run(const StepPlan& plan) override;

  // Of the step run last.
  [[nodiscard]] const StepPrice& price() const { return price_; }
  [[nodiscard]] Seconds copies() const { return copies_; }  // of its duration, as are the swaps
  [[nodiscard]] Seconds swaps() const { return swaps_; }
  [[nodiscard]] Seconds pauses() const {
    return (1 / machine_.stack.reached.interference_free - 1) * open_to_pauses(price_.seconds);
  }
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  Machine machine_;
  Bytes block_bytes_;     // of all layers
  int pieces_per_block_;  // K and V of each layer
  Bytes beside_;
  Seconds pending_copies_, pending_swaps_, copies_, swaps_;
  CacheWarmth warmth_;
  double cold_share_ = 0;  // of the next step
  StepPrice price_;
};

}  // namespace dculab::sim
