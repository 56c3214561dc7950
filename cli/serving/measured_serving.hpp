// The requests of a simulation served by this machine's engine, and the two held against each other.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/output/output.hpp"
#include "config/scenario_file.hpp"
#include "core/dtype.hpp"
#include "core/engine_options.hpp"
#include "core/workload.hpp"
#include "engine/generate/serve_replicas.hpp"
#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::cli {

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
};

struct MeasuredServing {
  engine::ServedWorkload served;
  Trace trace;
};

[[nodiscard]] MeasuredServing measure(const MeasuredServer& server, const RequestWorkload& workload);

// serving_figures, and how many steps and tokens they took.
[[nodiscard]] std::map<std::string, double> compared_figures(const ServingMetrics& metrics, std::int64_t num_steps);

// A metric's value with its unit: "12.3 ms", "51.2".
[[nodiscard]] Cell figure_cell(const std::string& metric, double value);

// How the scenario's deployment is served here, with these options. Throws InputError, naming `asking`, for what
// several replicas of one machine do not do.
[[nodiscard]] engine::ReplicaChoices replicas_here(const config::Scenario& scenario, const EngineOptions& options,
                                                   const std::string& asking);

// Several replicas in rows: what each did, and what it handed over.
[[nodiscard]] Table served_replica_table(const engine::ServedWorkload& served);
[[nodiscard]] Json served_replica_json(const engine::ServedWorkload& served);

// Metric by metric: simulated, measured, and how far the first is from the second.
[[nodiscard]] Table comparison_table(const std::map<std::string, double>& simulated,
                                     const std::map<std::string, double>& measured);
[[nodiscard]] Json comparison_json(const std::map<std::string, double>& simulated,
                                   const std::map<std::string, double>& measured);

}  // namespace dculab::cli
