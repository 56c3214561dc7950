// What `simulate` answers: a scenario's requests served under a virtual clock at every point of its sweep, which of the
// points its objective prefers, and what their figures rest on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "model/trace.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/hardware/machine.hpp"
#include "study/decide/drawn_requests.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::study {

// The points on one of the scenario's machines.
struct MachineSweep {
  std::string machine;  // as the scenario names it; where machines are swept, each point names its own
  std::vector<config::SweepPoint> points;
  std::vector<std::string> left_out;  // block sizes that the machine's stack does not take
};

struct SimulationQuestion {
  config::Scenario scenario;
  std::vector<std::string> kernels;  // whose they are
  std::vector<std::string> notes;    // of the models
  std::vector<MachineSweep> sweeps;

  [[nodiscard]] std::size_t num_points() const;
};

// Throws InputError for what cannot be found. Precondition: the scenario is read_serving_scenario()'s.
[[nodiscard]] SimulationQuestion simulation_question(config::Scenario scenario);

// By the scenario's objective.
struct SweepChoice {
  std::optional<std::size_t> best;            // of the simulations; nothing: none meets its limits
  std::vector<ServedBlockSizes> block_sizes;  // of each machine; with the model's own KV heads where these are swept
  bool sweeps_heads = false;                  // of which no objective can choose
};

// Input sensitivities of the steps of a machine, over the simulations there that have it as the first of them.
struct SimulationSensitivities {
  std::size_t simulation = 0;  // the first
  std::vector<sim::InputSensitivity> input_sensitivities;
};

struct SimulationAnswer {
  std::vector<Simulation> simulations;              // machine by machine, in the sweep's order
  std::vector<std::string> refused;                 // refused_kv() of their servers; a reason may come several times
  std::optional<std::vector<std::size_t>> front{};  // of the simulations, where scenario.pareto asks for it
  std::optional<SweepChoice> choice{};              // where the scenario has an objective
  std::vector<SimulationSensitivities> input_sensitivities{};  // one of each machine
  std::vector<sim::Machine> machines{};                        // without what the sweep changes
};

// Of which simulation's figures intervals are asked for: of one alone, whose requests are then served twice more.
enum class SimulatedIntervals : std::uint8_t { none, of_single_point };

// Throws InputError.
[[nodiscard]] SimulationAnswer answer_simulation(const SimulationQuestion& question, const SimulateOptions& options,
                                                 SimulatedIntervals intervals);

// Adds the measured steps of the simulations, which say whose they are.
void add_measured_steps(const std::vector<Simulation>& simulations, Trace& trace);

}  // namespace dculab::study
