// Points of a scenario with requests, simulated on a machine and, if asked for, run by this machine's engine.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/draft_report.hpp"
#include "cli/output/output.hpp"
#include "cli/serving/serving_report.hpp"
#include "config/chrome_trace.hpp"
#include "config/scenario_file.hpp"
#include "model/trace.hpp"
#include "sim/calibration/leanings.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/serving/step_confidence.hpp"

namespace dculab::cli {

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
};

enum class Serving : std::uint8_t { simulated, simulated_and_measured, simulated_and_traced };

struct SimulatedPoint {
  const config::SweepPoint* point = nullptr;
  std::string machine;
};

// The times of the simulations' kept steps, with figures of `machine` in the place of their own machine's.
[[nodiscard]] sim::Prices step_prices(const std::vector<const Simulation*>& simulations);

// Each of them, in their order, on so many threads at a time; 0: all cores. Those that are measured, or traced, one
// after the other. `chrome_trace` may be null. Throws InputError.
[[nodiscard]] std::vector<Simulation> simulate_points(const std::vector<SimulatedPoint>& points, Serving serving,
                                                      int threads, config::ChromeTrace* chrome_trace);

// The one that the objective prefers, of those that meet its constraints and, where asked, are `among` those.
[[nodiscard]] std::optional<std::size_t> best(const std::vector<Simulation>& all, const config::Objective& objective,
                                              const std::function<bool(const Simulation&)>& among = {});

// Of those that meet the objective's constraints, the ones that no other beats in what `aims` name, by the first of
// them. A simulation without one of the figures is left out.
[[nodiscard]] std::vector<std::size_t> pareto_front(const std::vector<Simulation>& all,
                                                    const std::vector<config::Aim>& aims,
                                                    const config::Objective& objective);

// What a server with two sets of KV heads served with each.
[[nodiscard]] HeadSetFigures head_sets_of(const Simulation& simulation);

// What was drafted in a run.
[[nodiscard]] DraftFigures drafts_of(const sim::ServingRun& run);

// "12 preemptions, 10 of them by swap (1.2 GiB out, 1.1 GiB in, 0.2 s)"
[[nodiscard]] std::string preemption_text(const sim::ServingRun& run);

// "z100, block 16"
[[nodiscard]] std::string label(const Simulation& simulation);

// A row for each; those that skipped tokens say how many.
[[nodiscard]] Table sweep_table(const std::vector<Simulation>& all);

[[nodiscard]] Json to_json(const Simulation& simulation);

}  // namespace dculab::cli
