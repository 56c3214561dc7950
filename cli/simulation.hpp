// One point of a scenario with requests, simulated on a machine and, if asked for, run by this machine's engine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "config/chrome_trace.hpp"
#include "config/scenario_file.hpp"
#include "core/trace.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::cli {

struct Simulation {
  std::string machine;
  std::vector<config::Override> choices;  // of the sweep
  ServiceLevel slo;
  sim::ServingRun run;
  std::map<std::string, double> figures;   // serving_figures
  std::map<std::string, double> measured;  // with --measure
  Trace trace;                             // the same: steps of the measured run
};

enum class Serving : std::uint8_t { simulated, simulated_and_measured, simulated_and_traced };

// `chrome_trace` may be null. Throws InputError.
[[nodiscard]] Simulation simulate_point(const config::SweepPoint& point, const std::string& machine_name,
                                        Serving serving, config::ChromeTrace* chrome_trace);

// The one that the objective prefers, of those that meet its constraints.
[[nodiscard]] std::optional<std::size_t> best(const std::vector<Simulation>& all, const config::Objective& objective);

// "z100, block 16"
[[nodiscard]] std::string label(const Simulation& simulation);

[[nodiscard]] Json to_json(const Simulation& simulation);

}  // namespace dculab::cli
