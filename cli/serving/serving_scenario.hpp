// Scenarios whose requests are served: how they are read, and what they may ask.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::cli {

// Throws InputError where the scenario has no requests, or asks about them what no simulation answers.
void refuse_unserved(const config::Scenario& scenario);

// By name or file, with `set` as key=value. Throws InputError where there are no requests, or what belongs to other
// commands.
[[nodiscard]] config::Scenario read_serving_scenario(const std::string& name, const std::vector<std::string>& set);

// "requests_per_second 20, block_size 16"
[[nodiscard]] std::string choices_text(const config::SweepPoint& point);

// Throws InputError, with `instead`, where the sweep changes the machine: for what runs or prices on given ones only.
void refuse_machine_axes(const config::Scenario& scenario, const std::string& instead);

// Gives `server` the KV blocks that this machine's engine is given too: those that every request at its longest needs,
// or fewer when gpu_memory_utilization of the machine's memory holds fewer. Of several replicas each has its share of
// the machine, which is `server`'s from then on. Throws InputError where the engine here would not run what is
// simulated; `remedy` says how to name a machine that it would.
void make_measurable(sim::SimulatedServer& server, const config::Scenario& scenario, const std::string& remedy);

}  // namespace dculab::cli
