// An executor that runs nothing: it answers how long a step would take on a machine.
#pragma once

#include <span>

#include "core/engine_options.hpp"
#include "core/executor.hpp"
#include "core/model_shape.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

class SimulatedExecutor : public Executor {
 public:
  // Preconditions: problems() of all three are empty.
  SimulatedExecutor(Machine machine, const ModelShape& model, const EngineOptions& options);

  // Each copy reads and writes a block of all layers in DRAM; the next step waits for it.
  void copy_blocks(std::span<const BlockCopy> copies) override;

  StepResult run(const StepPlan& plan) override;

  // Of the step run last.
  [[nodiscard]] const StepPrice& price() const { return price_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  Machine machine_;
  Bytes block_bytes_;  // of all layers
  Seconds pending_copies_;
  StepPrice price_;
};

}  // namespace dculab::sim
