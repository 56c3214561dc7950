// Requests served under a virtual clock: the engine's own scheduler, block pool and loop, with a price in the place of
// each step's run. Every generated token is the same one: what is computed does not matter, only how long it takes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "core/serving_loop.hpp"
#include "core/serving_metrics.hpp"
#include "core/serving_timeline.hpp"
#include "core/workload.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/serving/cluster.hpp"

namespace dculab::sim {

struct SimulatedServer {
  Machine machine;
  ModelShape model;
  EngineOptions options;
  // Of each virtual engine; absent: those that fit in a device's memory beside its part of the model, see
  // sim/memory/capacity.hpp.
  std::optional<int> num_blocks{};
  Deployment deployment{};
  double step_scale = 1;                     // what each step takes, over its price; > 0
  std::optional<Speculation> speculation{};  // where options have a speculative_config
  std::optional<FewHeads> few_heads{};       // where they have groups_by_load
  std::optional<Machine> decode_machine{};   // of decode replicas, where it is another than that of prefill replicas

  [[nodiscard]] const Machine& machine_of(ReplicaRole role) const {
    return role == ReplicaRole::decode && decode_machine ? *decode_machine : machine;
  }
};

// Of steps with one of two sets of heads; the model is the server's.
struct ServedModel {
  const ModelShape& model;
  EngineOptions options;
};
[[nodiscard]] ServedModel served_with(const SimulatedServer& server, const ReplicaDevices& devices, HeadSet set);

struct ReplicaRun {
  ReplicaRole role = ReplicaRole::both;
  std::int64_t requests = 0;  // that ended here
  std::int64_t num_steps = 0;
  int num_preemptions = 0;
  Seconds busy;           // its devices, on average
  int role_switches = 0;  // `role` is the last one
};

struct ServingRun {
  ServingMetrics metrics;
  ServingTimeline timeline;  // of all engines together
  int one_in = 1;  // groups of devices that share experts, and of requests, of which one is simulated (cluster.hpp)
  int num_engines = 0;
  std::int64_t num_blocks = 0;  // of all
  std::int64_t num_steps = 0;
  int num_preemptions = 0;
  SwapCounts swaps;
  Bytes swapped_out, swapped_in;                 // of all devices
  Seconds busy;                                  // sum of the steps, with drafting
  std::optional<Joules> energy{};                // of all devices, idle ones too; where the machine's power is stated
  DraftCounts drafts;                            // of all engines
  Seconds drafting;                              // within `busy`
  HeadSetCounts head_sets{};                     // of all engines, where options have groups_by_load,
  Bytes few_heads_weights{};                     // and what the second set takes on a device
  std::map<std::string, Seconds> time_by_bound;  // of `busy`, see ParallelExecutor::time_by_bound; and "drafting"
  std::vector<ReplicaRun> replicas;
};

// Everything that keeps the server from running the model; empty when nothing does.
[[nodiscard]] std::vector<std::string> problems(const SimulatedServer& server);

// Serves the whole workload. `callbacks` see each step, and each request, when it is done. Preconditions: problems() of
// both are empty. Throws InputError for a request that can never be served.
[[nodiscard]] ServingRun simulate(const SimulatedServer& server, const RequestWorkload& workload,
                                  const ServiceLevel& objective = {}, const ClusterCallbacks& callbacks = {});

}  // namespace dculab::sim
