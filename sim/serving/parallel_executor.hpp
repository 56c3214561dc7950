// The devices of one replica as an executor that answers how long a step takes: a shard's price, all-reduces
// with it, and, with several stages, the way through a pipeline whose stages other batches use too.
//
//   stage        = its share of the layers * layer ops
//   begin        = max(arrival, when the stage is free)
//   next arrival = begin + stage + transfer
//   transfer     = tokens * hidden values / link + latency
//
// Embedding and host are the first stage's, the head is the last one's. An op costs on its stage what it costs in the
// whole model.
//
// Of a replica whose devices share the routed experts, this is the device with the most work of one group that has
// sequences of its own. The groups step together, and all are taken to have as many tokens as this one. Two
// micro-batches overlap as sim/cost/micro_batches.hpp has it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/executor.hpp"
#include "core/serving_loop.hpp"
#include "core/units.hpp"
#include "sim/cost/micro_batches.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/serving/simulated_executor.hpp"

namespace dculab::sim {

// When each stage of a replica is free. Its virtual engines share it.
using StageTimes = std::vector<Seconds>;

class ParallelExecutor final : public Executor {
 public:
  // All must outlive the executor. Each step, transfers between devices and all, takes `step_scale` times its price.
  // Preconditions: problems() of all are empty; step_scale > 0; `stages` has one for each stage; steps of executors
  // that share `stages` run in the order in which they begin.
  ParallelExecutor(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                   ReplicaDevices devices, const Clock& clock, StageTimes& stages, double step_scale = 1);

  // The model that steps are to be planned for: a device's part of every layer.
  [[nodiscard]] const ModelShape& planned_model() const { return shard_; }

  void set_beside(Bytes bytes) { device_.set_beside(bytes); }

  void copy_blocks(std::span<const BlockCopy> copies) override { device_.copy_blocks(copies); }
  // Each device its part of every block, at the same time.
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override {
    device_.swap_blocks(out, in);
  }
  StepResult run(const StepPlan& plan) override;

  // Of the steps so far: what limits the ops ("compute", "latency", "launch" or a memory level), "host", "cold caches"
  // that others have driven weights and KV out of, "sampling", "exchange" between devices as far as nothing hides it,
  // "pipeline" for waiting until a stage is free, "rebalancing" of experts, "block copies", "swap" and "pauses".
  [[nodiscard]] const std::map<std::string, Seconds>& time_by_bound() const { return time_by_bound_; }

  // Of each device on average, without waiting.
  [[nodiscard]] Seconds device_time() const { return device_time_; }

  // What each device that shares a layer has drawn beyond power.idle, all stages together (sim/cost/energy.hpp); 0
  // where the machine's power is not stated. It is of the work: a step that takes longer than its price has no more.
  [[nodiscard]] Joules active_energy() const { return active_energy_; }

 private:
  // The step's parts, for the stages to divide.
  struct Work {
    Seconds before_layers, after_layers;
    std::vector<Seconds> layers;  // [kinds of layers]: all layers of a kind
    Seconds of_all_layers;        // whatever kind they are of
  };

  [[nodiscard]] Work add_bounds(const StepPlan& plan);
  [[nodiscard]] StepResult run_micro_batches();
  void add(std::string_view bound, Seconds price);
  void add_energy(const StepPlan& plan);
  [[nodiscard]] Seconds layers_in_stage(const Work& work, int stage) const;
  [[nodiscard]] Seconds through_the_stages(const StepPlan& plan, const Work& work);

  const Machine& machine_;
  const ModelShape& model_;
  const EngineOptions& options_;
  ReplicaDevices devices_;
  const Clock& clock_;
  StageTimes& stages_;
  double step_scale_;
  Dtype activation_dtype_;
  ModelShape shard_;
  SimulatedExecutor device_;
  double rebalancing_;       // what a second of work takes
  StepPlan first_, second_;  // of two micro-batches; re-used
  Seconds device_time_;
  Joules active_energy_;
  std::map<std::string, Seconds> time_by_bound_;
};

}  // namespace dculab::sim
