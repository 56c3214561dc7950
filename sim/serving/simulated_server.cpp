#include "sim/serving/simulated_server.hpp"

#include <string>

#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/token_price.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/serving/alone_latency.hpp"

namespace dculab::sim {
namespace {

// Who takes new requests.
[[nodiscard]] ReplicaRole first_role(const Deployment& deployment) {
  return deployment.is_disaggregated() ? ReplicaRole::prefill : ReplicaRole::both;
}

// Of a device.
[[nodiscard]] DraftMemory draft_memory(const SimulatedServer& server, ReplicaRole role) {
  if (!server.speculation || !server.options.speculative_config.enabled()) return {};
  return DraftWork(server.machine, server.model, server.options, server.deployment.of(role), *server.speculation)
      .memory();
}

// What is in a device's memory beside its part of the model.
[[nodiscard]] DraftMemory memory_beside(const SimulatedServer& server, ReplicaRole role) {
  if (!server.few_heads) return draft_memory(server, role);
  const ReplicaDevices devices = server.deployment.of(role);
  const auto part = [&](const ModelShape& model) {
    return part_of_a_device(devices, server.machine, model, server.options);
  };
  const FewHeads few{part(server.few_heads->model), server.few_heads->weights};
  return {.weights = few_heads_footprint(part(server.model), few, server.options.weights),
          .activations = {},
          .kv_bytes_per_token = {}};
}

// Of each virtual engine.
[[nodiscard]] std::int64_t num_blocks(const SimulatedServer& server, ReplicaRole role) {
  if (server.num_blocks) return *server.num_blocks;
  const ReplicaDevices devices = server.deployment.of(role);
  const Machine& machine = server.machine_of(role);
  const ModelShape part = part_of_a_device(devices, machine, server.model, server.options);
  const std::int64_t fit = capacity(machine, part, server.options, 1, memory_beside(server, role)).num_blocks;
  return fit / devices.pipeline_parallel_size;
}

// The host's, of each virtual engine.
[[nodiscard]] int num_host_blocks(const SimulatedServer& server) {
  const ReplicaDevices devices = server.deployment.of(first_role(server.deployment));
  const ModelShape part = part_of_a_device(devices, server.machine, server.model, server.options);
  const Bytes block = kv_block_bytes(part, server.options);
  return num_host_blocks(server.options, block) / devices.pipeline_parallel_size;
}

[[nodiscard]] bool pools_differ(const SimulatedServer& server) {
  return server.deployment.prefill || server.deployment.decode || server.decode_machine;
}

void find_block_problems(const SimulatedServer& server, ReplicaRole role, std::vector<std::string>& found) {
  const std::int64_t blocks = num_blocks(server, role);
  const bool differ = pools_differ(server);
  const std::string& machine = server.machine_of(role).name;
  const std::string where = differ ? " of a " + std::string(name(role)) + " replica" : "";
  if (blocks < 1)
    found.push_back(server.model.name + " leaves no room for a KV block in the memory of " + machine + where +
                    "; raise deployment.tensor_parallel_size or take weights of fewer bits");
  if (blocks > kMostBlocks)
    found.push_back(server.model.name + " leaves room for " + std::to_string(blocks) + " KV blocks in the memory of " +
                    machine + where + ", more than a simulation takes (" + std::to_string(kMostBlocks) +
                    "); raise kv_cache.block_size or lower engine.gpu_memory_utilization");
}

// Of a model with two sets of heads. Precondition: those of the model, the options and the deployment are empty.
void find_head_set_problems(const SimulatedServer& server, std::vector<std::string>& found) {
  if (server.options.groups_by_load.has_value() != server.few_heads.has_value())
    return found.push_back("engine.groups_by_load needs a second set of KV heads");
  if (!server.few_heads) return;
  const Deployment& deployment = server.deployment;
  if (deployment.is_disaggregated() || deployment.kv_store)
    return found.push_back(
        "engine.groups_by_load: a KV cache is of one set of heads, and is neither handed over nor read from a store");
  const ModelShape& few = server.few_heads->model;
  const ReplicaDevices devices = deployment.of(ReplicaRole::both);
  const auto add = [&found](const std::vector<std::string>& reasons) {
    for (const std::string& reason : reasons) found.push_back("engine.groups_by_load: " + reason);
    return !reasons.empty();
  };
  if (add(problems(few)) || add(problems(devices, server.machine, few, server.options))) return;
  const auto part = [&](const ModelShape& model) {
    return part_of_layers(devices, server.machine, model, server.options);
  };
  add(few_heads_problems(part(server.model), part(few), server.options));
}

void add_time(const ParallelExecutor& executor, ServingRun& run) {
  for (const auto& [bound, time] : executor.time_by_bound()) run.time_by_bound[bound] += time;
}

void add_replica(const Replica& replica, ServingRun& run, std::vector<ServingTimeline>& timelines) {
  ReplicaRun& its = run.replicas.emplace_back();
  its.role = replica.role;
  its.requests = replica.finished;
  its.role_switches = replica.role_switches;
  for (const VirtualEngine& engine : replica.engines) {
    its.num_steps += engine.report().num_steps;
    its.num_preemptions += engine.scheduler().num_preemptions();
    const ServingReport& report = engine.report();
    Seconds device_time = engine.executor().device_time() + report.drafting;
    if (engine.few_executor() != nullptr) device_time += engine.few_executor()->device_time();
    its.busy += device_time / static_cast<double>(replica.stages.size());
    run.busy += report.executor_time + report.drafting;
    run.drafts += report.drafts;
    run.drafting += report.drafting;
    run.swaps += engine.scheduler().swaps();
    run.num_blocks += engine.scheduler().pool().num_blocks();
    run.head_sets += engine.scheduler().head_sets();
    add_time(engine.executor(), run);
    if (engine.few_executor() != nullptr) add_time(*engine.few_executor(), run);
    timelines.push_back(engine.timeline());
  }
  if (run.drafting > Seconds{}) run.time_by_bound["drafting"] = run.drafting;
  run.num_steps += its.num_steps;
  run.num_preemptions += its.num_preemptions;
}

// From the first arrival to the last token.
[[nodiscard]] Joules energy_of(const SimulatedServer& server, const std::deque<Replica>& replicas,
                               const ServingRun& run) {
  Joules total;
  for (const ReplicaRole pool : pools_of(server.deployment)) {
    const Machine& machine = server.machine_of(pool);
    total += machines_of(machine, server.deployment, pool) * (*machine.power.idle * run.metrics.duration());
  }
  for (const Replica& replica : replicas) {
    const double devices = run.one_in * server.deployment.of(replica.role).tensor_parallel_size;
    for (const VirtualEngine& engine : replica.engines) total += devices * engine.active_energy();
  }
  return total;
}

}  // namespace

ServedModel served_with(const SimulatedServer& server, const ReplicaDevices& devices, HeadSet set) {
  if (set == HeadSet::many) return {server.model, server.options};
  const ModelShape& few = server.few_heads->model;
  return {few, options_of_few(devices, server.machine, server.model, few, server.options)};
}

std::vector<std::string> problems(const SimulatedServer& server) {
  std::vector<std::string> found = problems(server.model);
  for (std::string& problem : problems(server.options)) found.push_back(std::move(problem));
  if (!found.empty()) return found;
  for (std::string& problem : problems(server.options, server.model)) found.push_back(std::move(problem));
  const Machine* const decoding = server.decode_machine ? &*server.decode_machine : nullptr;
  for (std::string& problem : problems(server.deployment, server.machine, server.model, server.options, decoding))
    found.push_back(std::move(problem));
  for (std::string& problem :
       problems(server.speculation, server.model, server.options, server.deployment, server.machine))
    found.push_back("engine.speculative_config: " + std::move(problem));
  if (server.options.preemption_mode == PreemptionMode::swap && !can_swap(server.machine))
    found.push_back("preemption_mode swap: machine " + server.machine.name +
                    " has no host_link to swap over; give it one, or recompute");
  if (found.empty()) find_head_set_problems(server, found);
  if (!found.empty()) return found;
  find_block_problems(server, first_role(server.deployment), found);
  if (pools_differ(server)) find_block_problems(server, ReplicaRole::decode, found);
  return found;
}

ServingRun simulate(const SimulatedServer& server, const RequestWorkload& workload, const ServiceLevel& objective,
                    const ClusterCallbacks& callbacks) {
  ServingRun run;
  run.one_in = one_in(server.deployment);
  run.metrics = ServingMetrics(objective, run.one_in);
  const Machine* const decoding = server.decode_machine ? &*server.decode_machine : nullptr;
  const Deployment deployment =
      decoding == nullptr ? server.deployment : with_link_between(server.deployment, server.machine, *decoding);
  const EngineParts parts{.machine = server.machine,
                          .model = server.model,
                          .options = server.options,
                          .deployment = deployment,
                          .num_blocks = static_cast<int>(num_blocks(server, first_role(server.deployment))),
                          .num_host_blocks = num_host_blocks(server),
                          .step_scale = server.step_scale,
                          .num_decode_blocks = static_cast<int>(num_blocks(server, ReplicaRole::decode)),
                          .speculation = server.speculation ? &*server.speculation : nullptr,
                          .few_heads = server.few_heads ? &*server.few_heads : nullptr,
                          .decode_machine = decoding};
  std::optional<AloneLatency> alone;
  if (objective.slowdown) alone.emplace(parts);
  const auto add = [&run, &alone, &callbacks](const Sequence& sequence) {
    std::optional<Seconds> latency;
    if (alone) latency = alone->latency(sequence.num_prompt_tokens(), sequence.num_generated());
    run.metrics.add(sequence, latency);
    if (callbacks.on_finished) callbacks.on_finished(sequence);
  };
  Cluster cluster(parts, {.on_finished = add, .on_step = callbacks.on_step});
  RequestSource source(workload);
  cluster.run(source);
  std::vector<ServingTimeline> timelines;
  for (const Replica& replica : cluster.replicas()) add_replica(replica, run, timelines);
  const Bytes block = kv_block_bytes(server.model, server.options);
  run.swapped_out = block * static_cast<double>(run.swaps.blocks_out);
  run.swapped_in = block * static_cast<double>(run.swaps.blocks_in);
  run.num_engines = static_cast<int>(timelines.size());
  if (server.few_heads) run.few_heads_weights = memory_beside(server, ReplicaRole::both).weights;
  run.timeline = ServingTimeline::together(timelines);
  if (server.machine.power.is_stated() && server.machine_of(ReplicaRole::decode).power.is_stated())
    run.energy = energy_of(server, cluster.replicas(), run);
  return run;
}

}  // namespace dculab::sim
