// Points of a scenario with requests, simulated on a machine and, if asked for, measured beside.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/workload.hpp"
#include "model/trace.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/serving/step_confidence.hpp"

namespace dculab::study {

struct Simulation {
  std::string machine;
  std::vector<config::Override> choices;  // of the sweep
  sim::SimulatedServer server;
  ServiceLevel slo;
  sim::ServingRun run;
  std::vector<Batch> steps;                     // some of them
  std::map<std::string, double> figures;        // serving_figures
  sim::StepConfidence trust;                    // in its steps
  std::map<std::string, sim::Range> intervals;  // of the figures; empty until asked for
  std::map<std::string, double> measured;       // with --measure
  Trace trace;                                  // the same: steps of the measured run

  // "mi300x", or "mi300x, decode k100-ai" where pools are of two kinds
  [[nodiscard]] std::string machines() const {
    return server.decode_machine ? machine + ", decode " + server.decode_machine->name : machine;
  }
};

struct SimulatedPoint {
  const config::SweepPoint* point = nullptr;
  std::string machine;
};

// The times of the simulations' kept steps, with figures of `machine` in the place of their own machine's.
[[nodiscard]] sim::Prices step_prices(const std::vector<const Simulation*>& simulations);

// Measures what is simulated (study/measure/measured_simulation.hpp).
class ServingMeter {
 public:
  virtual ~ServingMeter() = default;
  // Before the simulation: what this machine gives the server. Throws InputError for what cannot be measured.
  virtual void prepare(const config::Scenario& scenario, sim::SimulatedServer& server) const = 0;
  // Adds to `done` what was measured.
  virtual void measure(const config::Scenario& scenario, const sim::SimulatedServer& server,
                       const RequestWorkload& workload, Simulation& done) const = 0;
};

struct SimulateOptions {
  int threads = 0;                                                         // 0: all cores
  const ServingMeter* meter = nullptr;                                     // null: nothing is measured
  std::function<void(const ServedStep&, int engine)> on_step{};            // may be empty
  std::function<void(const Sequence&)> on_finished{};                      // may be empty
  std::function<void(const std::string& label, double share)> progress{};  // may be empty
};

// Each of them, in their order. Where there is a meter, on_step or on_finished, one after the other. Throws InputError.
[[nodiscard]] std::vector<Simulation> simulate_points(const std::vector<SimulatedPoint>& points,
                                                      const SimulateOptions& options);

// "z100, block 16"
[[nodiscard]] std::string label(const Simulation& simulation);

}  // namespace dculab::study
