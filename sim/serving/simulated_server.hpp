// Requests served under a virtual clock: the engine's own scheduler, block pool and loop, with a price in the place of
// each step's run. Every generated token is the same one: what is computed does not matter, only how long it takes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "core/model_shape.hpp"
#include "core/serving_loop.hpp"
#include "core/serving_metrics.hpp"
#include "core/serving_timeline.hpp"
#include "core/workload.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct SimulatedServer {
  Machine machine;
  ModelShape model;
  EngineOptions options;
  std::optional<int> num_blocks;  // absent: those that fit in the machine's memory, see sim/memory/capacity.hpp
};

struct ServingRun {
  ServingMetrics metrics;
  ServingTimeline timeline;
  int num_blocks = 0;
  std::int64_t num_steps = 0;
  int num_preemptions = 0;
  Seconds busy;  // sum of the steps
  // Of `busy`: what limits the ops ("compute", "latency", "launch" or a memory level), and "host".
  std::map<std::string, Seconds> time_by_bound;
};

// Everything that keeps the server from running the model; empty when nothing does.
[[nodiscard]] std::vector<std::string> problems(const SimulatedServer& server);

// Serves the whole workload. `on_step` sees each step when it is done. Preconditions: problems() of both are empty.
// Throws InputError for a request that can never be served.
[[nodiscard]] ServingRun simulate(const SimulatedServer& server, const RequestWorkload& workload,
                                  const ServiceLevel& objective = {},
                                  const std::function<void(const ServedStep&)>& on_step = {});

}  // namespace dculab::sim
