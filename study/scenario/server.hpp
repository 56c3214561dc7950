// Which server does a scenario describe?
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/serving/simulated_server.hpp"

namespace dculab::study {

// The scenario's server of `model`, whether `machine` can run it or not. Throws InputError for what no machine can.
[[nodiscard]] sim::SimulatedServer describe_server(const config::Scenario& scenario, const ModelShape& model,
                                                   sim::Machine machine);

// Throws InputError, naming `file`, for a server that cannot run its model.
void require_runnable(const sim::SimulatedServer& server, const std::string& file);

// Throws InputError for a server that cannot run the scenario's model.
[[nodiscard]] sim::SimulatedServer resolve_server(const config::Scenario& scenario, sim::Machine machine);

// Why the engine refuses the KV cache of a server's devices although it is priced: see served.hpp. `model`: whole.
[[nodiscard]] std::vector<std::string> refused_kv(const sim::Deployment& deployment, const sim::Machine& machine,
                                                  const ModelShape& model, const EngineOptions& options);
[[nodiscard]] std::vector<std::string> refused_kv(const sim::SimulatedServer& server);

}  // namespace dculab::study
