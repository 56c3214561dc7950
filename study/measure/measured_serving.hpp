// The requests of a simulation served by this machine's engine.
#pragma once

#include <optional>
#include <string>

#include "config/scenario_file.hpp"
#include "core/dtype.hpp"
#include "core/engine_options.hpp"
#include "core/workload.hpp"
#include "engine/generate/serve_replicas.hpp"
#include "engine/measure/step_bench.hpp"
#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::study {

// The scenario's model on a device of this machine, with the KV blocks that both halves are given. Weights of another
// format than the model folder's are random: they are as fast.
struct MeasuredServer {
  const config::Scenario& scenario;
  EngineOptions options;
  int num_blocks = 0;
  int threads = 1;
  engine::OpTiming op_timing = engine::OpTiming::off;  // on: the trace knows the ops, and steps are a little slower
  const sim::Machine* machine = nullptr;               // this one, known: then the trace says how cold its caches were
  std::size_t most_trace_steps = 1000;                 // all of them in order, or that many drawn from more
  engine::DeviceChoice device{};
  engine::ReplicaChoices replicas{};  // several: of the CPU; blocks, threads and machine are those of each
  std::string speculative_model{};    // options.speculative_config's draft model or heads: their folder, or a name
  std::optional<WeightFormat> draft_weights{};  // of a draft model; absent: its checkpoint's own
  engine::BenchProgress progress{};             // of the requests; may be empty
};

struct MeasuredServing {
  engine::ServedWorkload served;
  Trace trace;
};

[[nodiscard]] MeasuredServing measure(const MeasuredServer& server, const RequestWorkload& workload);

// How the scenario's deployment is served here, with these options. Throws InputError, naming `asking`, for what
// several replicas of one machine do not do.
[[nodiscard]] engine::ReplicaChoices replicas_here(const config::Scenario& scenario, const EngineOptions& options,
                                                   const std::string& asking);

// Gives `server` the KV blocks that this machine's engine is given too: those that every request at its longest needs,
// or fewer when gpu_memory_utilization of the machine's memory holds fewer. Of several replicas each has its share of
// the machine, which is `server`'s from then on. Throws InputError where the engine here would not run what is
// simulated; `remedy` says how to name a machine that it would.
void make_measurable(sim::SimulatedServer& server, const config::Scenario& scenario, const std::string& remedy);

}  // namespace dculab::study
