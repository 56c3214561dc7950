#include "study/scenario/server.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "study/scenario/asked_metrics.hpp"
#include "study/scenario/few_heads.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/speculation.hpp"

namespace dculab::study {

sim::SimulatedServer describe_server(const config::Scenario& scenario, const ModelShape& model, sim::Machine machine) {
  if (scenario.workload.kv_padding != config::KvPadding::none)
    throw InputError(scenario.file,
                     "workload.kv_padding: belongs to compare in `dculab study`; a sequence walks its own blocks");
  const EngineOptions options = resolve_options(scenario, model, machine);
  if (scenario.slo.slowdown && drops_tokens(options.kv_retention.policy))
    throw InputError(scenario.file,
                     "slo.slowdown: what a request takes alone is known with kv_cache.retention all only");
  if (scenario.slo.slowdown && options.speculative_config.enabled())
    throw InputError(scenario.file,
                     "slo.slowdown: what a request takes alone is known without speculative_config only");
  if (scenario.slo.slowdown)
    refuse_groups_by_load(scenario, "slo.slowdown: what a request takes alone depends on the set that it gets");
  std::optional<sim::Machine> decode_machine = resolve_decode_machine(scenario);
  if (decode_machine) refuse_unstated_costs(scenario, *decode_machine);
  return {.machine = std::move(machine),
          .model = model,
          .options = options,
          .deployment = scenario.deployment,
          .speculation = resolve_speculation(scenario),
          .few_heads = resolve_few_heads(scenario, model, options),
          .decode_machine = std::move(decode_machine)};
}

void require_runnable(const sim::SimulatedServer& server, const std::string& file) {
  if (const auto found = problems(server); !found.empty()) throw InputError(file, found.front());
}

sim::SimulatedServer resolve_server(const config::Scenario& scenario, sim::Machine machine) {
  sim::SimulatedServer server = describe_server(scenario, resolve_model(scenario), std::move(machine));
  const sim::Machine* const decoding = server.decode_machine ? &*server.decode_machine : nullptr;
  refuse_deployment(scenario, problems(server.deployment, server.machine, server.model, server.options, decoding));
  require_drafts(scenario, server.speculation, server.model, server.options, server.machine);
  require_runnable(server, scenario.file);
  if (decoding != nullptr) {
    const sim::ReplicaDevices devices = server.deployment.of(ReplicaRole::decode);
    try {
      require_served(*decoding, sim::part_of_layers(devices, *decoding, server.model, server.options), server.options);
    } catch (const InputError& error) {
      throw InputError("deployment.decode.machine " + decoding->name, std::string(error.what()) +
                                                                          "; both pools run with the same sizes: --set "
                                                                          "kv_cache.block_size=...");
    }
  }
  if (server.few_heads) {
    const sim::ReplicaDevices devices = server.deployment.of(ReplicaRole::both);
    const sim::ServedModel few = served_with(server, devices, HeadSet::few);
    require_served(server.machine, few.model, few.options);
  }
  return server;
}

std::vector<std::string> refused_kv(const sim::Deployment& deployment, const sim::Machine& machine,
                                    const ModelShape& model, const EngineOptions& options) {
  std::vector<ReplicaRole> roles{ReplicaRole::both};
  if (deployment.is_disaggregated()) roles = {ReplicaRole::prefill, ReplicaRole::decode};
  std::vector<std::string> found;
  for (const ReplicaRole role : roles) {
    const ModelShape part = sim::part_of_layers(deployment.of(role), machine, model, options);
    for (std::string& reason : refused_kv(machine, part, options))
      if (std::ranges::find(found, reason) == found.end()) found.push_back(std::move(reason));
  }
  return found;
}

std::vector<std::string> refused_kv(const sim::SimulatedServer& server) {
  std::vector<std::string> found = refused_kv(server.deployment, server.machine, server.model, server.options);
  if (!server.decode_machine) return found;
  const sim::ReplicaDevices devices = server.deployment.of(ReplicaRole::decode);
  const sim::Machine& machine = *server.decode_machine;
  const ModelShape part = sim::part_of_layers(devices, machine, server.model, server.options);
  for (std::string& reason : refused_kv(machine, part, server.options))
    if (std::ranges::find(found, reason) == found.end()) found.push_back(std::move(reason));
  return found;
}

}  // namespace dculab::study
