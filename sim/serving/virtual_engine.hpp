// A scheduler with its KV blocks, a loop and a clock on the devices of a replica. A replica with p pipeline stages has
// p of them, so that every stage has a batch to work on, each with 1 / p of the blocks (vLLM 0's virtual engines).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/router.hpp"
#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "core/serving_timeline.hpp"
#include "model/few_heads.hpp"
#include "sim/serving/parallel_executor.hpp"
#include "sim/serving/simulated_drafter.hpp"

namespace dculab::sim {

// What all engines of a deployment have in common.
struct EngineParts {
  const Machine& machine;
  const ModelShape& model;
  const EngineOptions& options;
  const Deployment& deployment;
  int num_blocks;                            // of one engine
  int num_host_blocks = 0;                   // the same
  double step_scale = 1;                     // see ParallelExecutor
  std::optional<int> num_decode_blocks{};    // of one of a decode replica; absent: as of the others
  const Speculation* speculation = nullptr;  // where options have a speculative_config
  const FewHeads* few_heads = nullptr;       // where they have groups_by_load
  const Machine* decode_machine = nullptr;   // of decode replicas, where it is another

  [[nodiscard]] const Machine& machine_of(ReplicaRole role) const {
    return role == ReplicaRole::decode && decode_machine != nullptr ? *decode_machine : machine;
  }
  [[nodiscard]] int blocks_of(ReplicaRole role) const {
    return role == ReplicaRole::decode ? num_decode_blocks.value_or(num_blocks) : num_blocks;
  }
};

class VirtualEngine {
 public:
  // `parts` and `stages` must outlive the engine.
  VirtualEngine(const EngineParts& parts, ReplicaRole role, StageTimes& stages, ServingCallbacks callbacks);
  VirtualEngine(const VirtualEngine&) = delete;
  VirtualEngine& operator=(const VirtualEngine&) = delete;

  // Why the request could never be served, or nothing.
  [[nodiscard]] std::optional<std::string> refusal(const Request& request) const { return scheduler_.refusal(request); }

  // Queues a request. Preconditions: refusal(request) is empty; no request submitted before arrives later.
  void submit(Request request);

  [[nodiscard]] bool is_busy() const { return now_.requests > 0; }
  [[nodiscard]] Seconds now() const { return clock_.now(); }  // when its next step begins
  void step() { loop_.step(); }                               // Precondition: is_busy().

  // Unfinished requests at `time`, which may lie within the step run last: its tokens are then not counted yet, and
  // who ends with it is still there. Precondition: the step before that has ended.
  [[nodiscard]] ReplicaLoad load(Seconds time) const { return time < clock_.now() ? during_step_ : now_; }

  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] const ServingReport& report() const { return loop_.report(); }
  [[nodiscard]] const ServingTimeline& timeline() const { return timeline_; }
  [[nodiscard]] const ParallelExecutor& executor() const { return executor_; }
  // Of each device that shares a layer, beyond power.idle: with drafting, and of both sets of heads.
  [[nodiscard]] Joules active_energy() const;
  // With the second set of heads; null where there is none.
  [[nodiscard]] const ParallelExecutor* few_executor() const { return few_ ? &few_->executor : nullptr; }

 private:
  [[nodiscard]] ServingCallbacks watched(ServingCallbacks callbacks);

  Scheduler scheduler_;
  VirtualClock clock_;
  ParallelExecutor executor_;
  // Steps with the second set of heads.
  struct Few {
    EngineOptions options;
    ParallelExecutor executor;
    Few(const EngineParts& parts, ReplicaDevices devices, const Clock& clock, StageTimes& stages);
  };
  std::optional<Few> few_;
  std::optional<DraftWork> draft_work_;
  std::optional<SimulatedDrafter> drafter_;
  SimulatedTokens tokens_;
  ServingTimeline timeline_;
  ReplicaLoad now_, during_step_;
  ServingLoop loop_;
};

}  // namespace dculab::sim
