// A scenario's requests served by this machine's engine and simulated, point by point of the sweep, and the two held
// against each other metric by metric.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "engine/generate/serve.hpp"
#include "engine/measure/step_bench.hpp"
#include "model/trace.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::study {

// A figure of a point's served requests: the median of its rounds, and what the simulator expects of it.
struct ComparedMetric {
  std::string metric;
  double simulated = 0;
  double low = 0, high = 0;  // the simulated figure's 90 % interval
  double measured = 0;
  double lowest = 0, highest = 0;  // of the rounds
  double limit = 0;                // how far the simulator may be off, as a share

  [[nodiscard]] double off() const { return simulated / measured - 1; }
  [[nodiscard]] bool is_within() const;
  [[nodiscard]] bool is_inside() const { return measured >= low && measured <= high; }
};

struct ComparedPointServing {
  const config::SweepPoint* point = nullptr;
  sim::SimulatedServer server;
  std::vector<ComparedMetric> metrics;
  HeadSetCounts simulated_head_sets{};  // where there are two
  engine::ServedWorkload last;          // what was measured in the last round
};

// Points whose engines have the same share of this machine, which is calibrated for them.
struct ServedGroup {
  int replicas = 1;
  sim::Machine machine;  // calibrated
  sim::ErrorSummary fit_error;
  std::size_t num_steps = 0;  // that were fitted
  std::vector<ComparedPointServing> points;
};

struct ServedStudy {
  std::vector<ServedGroup> groups;
  Trace trace;           // of the first group's fitted steps
  sim::Machine machine;  // the first group's, which cites them
};

// In each of measure.repeats rounds every point is served twice: with requests of another seed, whose steps calibrate
// the simulator, and with the scenario's own, which are then simulated. `sweep`: the scenario's points, which the
// result points into. `host` is this machine before calibration. Throws InputError for what the engine here cannot
// serve.
[[nodiscard]] ServedStudy measure_served_study(const config::Scenario& scenario,
                                               const std::vector<config::SweepPoint>& sweep, const sim::Machine& host,
                                               const engine::BenchProgress& progress);

}  // namespace dculab::study
