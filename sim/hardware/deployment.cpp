#include "sim/hardware/deployment.hpp"

#include <algorithm>

#include "core/kv/table.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/shard.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] std::string text(std::int64_t devices) { return std::to_string(devices) + " devices"; }

[[nodiscard]] int devices_of_node(const Machine& machine, int devices) {
  return machine.peers ? 1 + *machine.peers : devices;
}

// Stages fill the servers one after the other: a border between servers lies after every `server` devices.
[[nodiscard]] int devices_on_the_way(const ReplicaDevices& devices, const Machine& machine, int stage) {
  const int size = devices.tensor_parallel_size;
  const int server = devices_of_node(machine, devices.devices());
  const bool crosses = stage * size / server != (stage + 1) * size / server;
  return crosses ? server + 1 : std::min(server, 2 * size);
}

[[nodiscard]] std::optional<DeviceLink> link_of_all(const Deployment& deployment, const Machine& machine) {
  return link_among(machine, static_cast<int>(deployment.devices()));
}

// Replicas on CPUs without a link share a memory: the one copies its blocks out, the other copies them in, and each
// copy reads and writes.
[[nodiscard]] BytesPerSecond through_memory(const Machine& machine) {
  return machine.dram().bandwidth * machine.sustained.dram_bandwidth / 4;
}

[[nodiscard]] std::optional<BytesPerSecond> kv_bandwidth(const Deployment& deployment, const Machine& machine) {
  if (deployment.kv_transfer_bandwidth) return deployment.kv_transfer_bandwidth;
  // Replicas of a CPU copy blocks through memory; its peer link is of processes that share a model.
  if (machine.kind == lower::DeviceKind::cpu) return through_memory(machine);
  const std::optional<DeviceLink> link = link_of_all(deployment, machine);
  return link ? std::optional(link->bandwidth) : std::nullopt;
}

void find_pipeline_problems(const ReplicaDevices& devices, const Machine& machine, const ModelShape& model,
                            std::vector<std::string>& found) {
  const int stages = devices.pipeline_parallel_size;
  if (stages > model.num_layers())
    found.push_back(std::to_string(model.num_layers()) + " layers do not make " + std::to_string(stages) + " stages");
  for (int stage = 0; stage + 1 < stages; ++stage) {
    const int among = devices_on_the_way(devices, machine, stage);
    if (link_among(machine, among)) continue;
    const char* link = share_a_server(machine, among) ? "peer_link" : "network_link";
    return found.push_back("machine " + machine.name + " has no " + link + " from one pipeline stage to the next");
  }
}

[[nodiscard]] std::vector<std::string> expert_problems(const ReplicaDevices& devices, const Machine& machine,
                                                       const ModelShape& model, const EngineOptions& options) {
  std::vector<std::string> found = expert_shard_problems(model, options.weights, expert_sharing(devices, machine));
  for (std::string& problem : token_exchange_problems(machine, devices.experts.size)) found.push_back(problem);
  if (machine.kind == lower::DeviceKind::cpu && devices.experts.dispatch_dtype)
    found.emplace_back("dispatch_dtype: processes of a CPU send values as they are; leave it out");
  if (machine.stack.split == Split::layers)
    found.push_back("stack " + machine.stack.name + " gives each device whole layers, no part of one");
  if (devices.pipeline_parallel_size > 1)
    found.emplace_back("expert_parallel_size shares every layer; pipeline_parallel_size must be 1 beside it");
  return found;
}

void find_switching_problems(const Deployment& deployment, std::vector<std::string>& found) {
  if (!deployment.role_switching) return;
  for (std::string& problem : problems(*deployment.role_switching)) found.push_back(std::move(problem));
  if (!deployment.is_disaggregated())
    found.emplace_back("role_switching: is of pools; add prefill_replicas and decode_replicas");
  else if (deployment.replicas() < 3)
    found.emplace_back("role_switching: one replica of each role stays, so there must be three or more");
  if (deployment.prefill || deployment.decode || deployment.shares_experts())
    found.emplace_back(
        "role_switching: replicas must be alike, and each a single group; leave prefill, decode and "
        "expert_parallel_size out");
}

// Of pools on two kinds of machine, which are never in one server.
void find_machine_problems(const Deployment& deployment, const Machine& prefill, const Machine& decode,
                           std::vector<std::string>& found) {
  if (!deployment.is_disaggregated())
    found.emplace_back("decode.machine: is of decode replicas; add prefill_replicas and decode_replicas");
  if (deployment.role_switching) found.emplace_back("role_switching: replicas must be alike; leave decode.machine out");
  if (deployment.kv_store)
    found.emplace_back("kv_store: is read by replicas of one kind; leave it or decode.machine out");
  if (deployment.kv_transfer_bandwidth) return;
  for (const Machine* machine : {&prefill, &decode})
    if (!machine->network_link)
      found.push_back("machine " + machine->name +
                      " has no network_link for the KV cache; give deployment.kv_transfer.bandwidth");
}

void find_idle_settings(const ExpertParallel& experts, std::vector<std::string>& found) {
  const auto idle = [&found](bool is_set, const char* key) {
    if (is_set)
      found.push_back(std::string(key) + ": is of routed experts that devices share; add expert_parallel_size");
  };
  idle(experts.num_redundant_experts > 0, "num_redundant_experts");
  idle(experts.rebalance_interval.has_value(), "rebalance_interval");
  idle(experts.shared_experts != SharedExperts::replicated, "shared_experts");
  idle(experts.dispatch_dtype.has_value(), "dispatch_dtype");
  idle(experts.micro_batches > 1, "micro_batches");
}

// Of a stage.
[[nodiscard]] ModelShape with_layers_of_stage(const ReplicaDevices& devices, const ModelShape& part, int stage) {
  const int first = first_layer_of_stage(devices, part, stage), count = layers_of_stage(devices, part, stage);
  ModelShape result = part;
  result.layers.assign(part.layers.begin() + first, part.layers.begin() + first + count);
  if (!part.kv_sources.empty()) {
    result.kv_sources.assign(part.kv_sources.begin() + first, part.kv_sources.begin() + first + count);
    for (int& source : result.kv_sources) source = std::max(0, source - first);
  }
  return with_layers(std::move(result), count);
}

}  // namespace

std::vector<ReplicaRole> pools_of(const Deployment& deployment) {
  if (!deployment.is_disaggregated()) return {ReplicaRole::both};
  return {ReplicaRole::prefill, ReplicaRole::decode};
}

std::vector<std::string> problems(const ReplicaDevices& devices, const Machine& machine, const ModelShape& model,
                                  const EngineOptions& options) {
  if (devices.shares_experts()) return expert_problems(devices, machine, model, options);
  std::vector<std::string> found = sharing_problems(machine, model, options.weights, devices.tensor_parallel_size);
  find_pipeline_problems(devices, machine, model, found);
  find_idle_settings(devices.experts, found);
  return found;
}

std::vector<std::string> problems(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                                  const EngineOptions& options, const Machine* decode_machine) {
  std::vector<std::string> found;
  if ((deployment.prefill_replicas > 0) != (deployment.decode_replicas > 0))
    found.emplace_back("prefill_replicas and decode_replicas need each other");
  const bool pools = deployment.is_disaggregated();
  if (!pools && (deployment.prefill || deployment.decode))
    found.emplace_back("prefill and decode: are of pools; add prefill_replicas and decode_replicas");
  for (const ReplicaRole role : {ReplicaRole::both, ReplicaRole::prefill, ReplicaRole::decode}) {
    if ((role == ReplicaRole::both) == pools) continue;
    const bool own = role == ReplicaRole::prefill ? deployment.prefill.has_value() : deployment.decode.has_value();
    const Machine& its = role == ReplicaRole::decode && decode_machine != nullptr ? *decode_machine : machine;
    for (const std::string& problem : problems(deployment.of(role), its, model, options)) {
      std::string named = pools && own ? std::string(name(role)) + ": " + problem : problem;
      if (std::ranges::find(found, named) == found.end()) found.push_back(std::move(named));
    }
  }
  if (deployment.kv_store && options.enable_prefix_caching && deployment.kv_store->hit_rate)
    found.emplace_back("kv_store.hit_rate: has the prefixes that engine.enable_prefix_caching would find; keep one");
  if (deployment.kv_store && (model.has_delta_nets() || model.has_compressed_entries()))
    found.push_back("kv_store: the prefix of a prompt to " + model.name +
                    " is not its KV blocks alone: its layers keep states or windows besides");
  if (deployment.kv_store && differs_in_decodes(options.kv_retention.policy))
    found.emplace_back("kv_store: only a whole KV cache is put there; leave kv_cache.retention out");
  find_switching_problems(deployment, found);
  if (decode_machine != nullptr) find_machine_problems(deployment, machine, *decode_machine, found);
  if (!pools) return found;
  if (deployment.data_parallel_size != 1)
    found.emplace_back("prefill_replicas and decode_replicas take the place of data_parallel_size; leave it out");
  if (differs_in_decodes(options.kv_retention.policy))
    found.emplace_back("kv_cache.retention: only a whole KV cache is handed from a prefill to a decode replica");
  if (options.batching != Batching::continuous)
    found.emplace_back("engine.batching: static batches are not split into prefill and decode replicas");
  if (decode_machine == nullptr && !kv_bandwidth(deployment, machine))
    found.push_back("machine " + machine.name + " has no link between its " + text(deployment.devices()) +
                    " for the KV cache; give deployment.kv_transfer.bandwidth");
  return found;
}

Deployment with_link_between(Deployment deployment, const Machine& prefill, const Machine& decode) {
  if (!deployment.kv_transfer_bandwidth)
    deployment.kv_transfer_bandwidth = std::min(*prefill.network_link, *decode.network_link);
  if (!deployment.kv_transfer_latency)
    deployment.kv_transfer_latency =
        std::max(prefill.network_latency.value_or(Seconds()), decode.network_latency.value_or(Seconds()));
  return deployment;
}

ExpertSharing expert_sharing(const ReplicaDevices& devices, const Machine& machine) {
  const ExpertParallel& experts = devices.experts;
  const bool on_cpu = machine.kind == lower::DeviceKind::cpu;
  const bool seen = experts.num_redundant_experts > 0 || experts.rebalance_interval ||
                    experts.shared_experts == SharedExperts::placed;
  return {.devices = experts.size,
          .devices_per_node = std::min(experts.size, devices_of_node(machine, experts.size)),
          .tensor_parallel_size = devices.tensor_parallel_size,
          .redundant_experts = experts.num_redundant_experts,
          .shared = experts.shared_experts,
          .statistics = seen ? ExpertStatistics::seen : ExpertStatistics::none,
          .dispatch_dtype = on_cpu ? std::optional(Dtype::f32) : experts.dispatch_dtype};
}

int layers_of_stage(const ReplicaDevices& devices, const ModelShape& model, int stage) {
  const int stages = devices.pipeline_parallel_size;
  return model.num_layers() / stages + (stage < model.num_layers() % stages ? 1 : 0);
}

int first_layer_of_stage(const ReplicaDevices& devices, const ModelShape& model, int stage) {
  int first = 0;
  for (int before = 0; before < stage; ++before) first += layers_of_stage(devices, model, before);
  return first;
}

ModelShape part_of_layers(const ReplicaDevices& devices, const Machine& machine, const ModelShape& model,
                          const EngineOptions& options) {
  if (!devices.shares_experts()) return shard(model, options.weights, devices.tensor_parallel_size);
  return shard_experts(model, options.weights, expert_sharing(devices, machine), options.expert_load);
}

EngineOptions options_of_few(const ReplicaDevices& devices, const Machine& machine, const ModelShape& many,
                             const ModelShape& few, const EngineOptions& options) {
  return dculab::options_of_few(options, part_of_layers(devices, machine, many, options),
                                part_of_layers(devices, machine, few, options));
}

ModelShape part_of_a_device(const ReplicaDevices& devices, const Machine& machine, const ModelShape& model,
                            const EngineOptions& options) {
  const ModelShape part = part_of_layers(devices, machine, model, options);
  if (devices.pipeline_parallel_size == 1) return part;
  std::optional<ModelShape> fullest;
  Bytes most;
  for (int stage = 0; stage < devices.pipeline_parallel_size; ++stage) {
    ModelShape layers = with_layers_of_stage(devices, part, stage);
    const Bytes bytes = weight_footprint(layers, options.weights);
    if (fullest && bytes <= most) continue;
    fullest = std::move(layers);
    most = bytes;
  }
  return *std::move(fullest);
}

double rebalancing_factor(const ReplicaDevices& devices, const Machine& machine, const ModelShape& part,
                          const EngineOptions& options) {
  if (!devices.shares_experts() || !devices.experts.rebalance_interval) return 1;
  const Seconds moving =
      held_expert_bytes(part, options.weights) / link_among(machine, devices.experts.size)->bandwidth;
  return 1 + moving / *devices.experts.rebalance_interval;
}

DeviceLink stage_link(const ReplicaDevices& devices, const Machine& machine, int stage) {
  return *link_among(machine, devices_on_the_way(devices, machine, stage));
}

Seconds kv_sending_time(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                        Dtype kv_cache_dtype, int prompt_tokens) {
  const ReplicaDevices devices = deployment.of(ReplicaRole::prefill);
  const ModelShape part = shard(model, model.layer_format(), devices.tensor_parallel_size);
  Bytes most;
  for (int stage = 0; stage < devices.pipeline_parallel_size; ++stage) {
    const ModelShape layers = with_layers_of_stage(devices, part, stage);
    const Bytes windows = layers.has_compressed_entries() ? kv_residual_bytes(layers, kv_cache_dtype, 0) : Bytes();
    const Bytes entries = kv_bytes_per_token(layers, kv_cache_dtype) * prompt_tokens;
    most = std::max(most, entries + windows + recurrent_state_bytes(layers));
  }
  return most / *kv_bandwidth(deployment, machine);
}

Seconds kv_latency(const Deployment& deployment, const Machine& machine) {
  if (deployment.kv_transfer_latency) return *deployment.kv_transfer_latency;
  const std::optional<DeviceLink> link = link_of_all(deployment, machine);
  return link ? link->latency : Seconds{};
}

Seconds store_reading_time(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                           Dtype kv_cache_dtype, int tokens) {
  const ReplicaDevices devices =
      deployment.of(deployment.is_disaggregated() ? ReplicaRole::prefill : ReplicaRole::both);
  const int node = std::min(devices.devices(), devices_of_node(machine, devices.devices()));
  const double groups = std::max(1, node / (devices.devices() / devices.ranks()));
  return groups * (kv_bytes_per_token(model, kv_cache_dtype) * tokens) / deployment.kv_store->read_bandwidth;
}

}  // namespace dculab::sim
