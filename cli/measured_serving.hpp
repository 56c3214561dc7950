// The requests of a simulation served by this machine's engine, and the two held against each other.
#pragma once

#include <map>
#include <string>

#include "cli/output.hpp"
#include "config/scenario_file.hpp"
#include "core/engine_options.hpp"
#include "core/trace.hpp"
#include "core/workload.hpp"
#include "engine/generate/serve.hpp"

namespace dculab::cli {

// The scenario's model on this machine's CPU, with the KV blocks that both halves are given. Weights of another format
// than the model folder's are random: they are as fast.
struct MeasuredServer {
  const config::Scenario& scenario;
  EngineOptions options;
  int num_blocks = 0;
  int threads = 1;
  engine::OpTiming op_timing = engine::OpTiming::off;  // on: the trace knows the ops, and steps are a little slower
};

struct MeasuredServing {
  engine::ServedWorkload served;
  Trace trace;  // a thousand of the steps at most
};

[[nodiscard]] MeasuredServing measure(const MeasuredServer& server, const RequestWorkload& workload);

// Metric by metric: simulated, measured, and how far the first is from the second.
[[nodiscard]] Table comparison_table(const std::map<std::string, double>& simulated,
                                     const std::map<std::string, double>& measured);
[[nodiscard]] Json comparison_json(const std::map<std::string, double>& simulated,
                                   const std::map<std::string, double>& measured);

}  // namespace dculab::cli
