#include "sim/serving/deployment.hpp"

#include <algorithm>

#include "model/shard.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] std::string text(int devices) { return std::to_string(devices) + " devices"; }

// Stages follow each other through the servers: a border between servers lies where so many devices are full.
[[nodiscard]] int devices_on_the_way(const Deployment& deployment, const Machine& machine, int stage) {
  const int size = deployment.tensor_parallel_size;
  const int server = machine.peers ? 1 + *machine.peers : deployment.devices();
  const bool crosses = stage * size / server != (stage + 1) * size / server;
  return crosses ? server + 1 : std::min(server, 2 * size);
}

[[nodiscard]] std::optional<BytesPerSecond> kv_bandwidth(const Deployment& deployment, const Machine& machine) {
  if (deployment.kv_transfer_bandwidth) return deployment.kv_transfer_bandwidth;
  const std::optional<DeviceLink> link = link_among(machine, deployment.devices());
  return link ? std::optional(link->bandwidth) : std::nullopt;
}

void find_pipeline_problems(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                            std::vector<std::string>& found) {
  const int stages = deployment.pipeline_parallel_size;
  if (stages > model.num_layers())
    found.push_back(std::to_string(model.num_layers()) + " layers do not make " + std::to_string(stages) + " stages");
  for (int stage = 0; stage + 1 < stages; ++stage) {
    const int devices = devices_on_the_way(deployment, machine, stage);
    if (link_among(machine, devices)) continue;
    const char* link = share_a_server(machine, devices) ? "peer_link" : "network_link";
    return found.push_back("machine " + machine.name + " has no " + link + " from one pipeline stage to the next");
  }
}

}  // namespace

std::vector<std::string> problems(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                                  const EngineOptions& options) {
  std::vector<std::string> found = sharing_problems(machine, model, options.weights, deployment.tensor_parallel_size);
  find_pipeline_problems(deployment, machine, model, found);
  if ((deployment.prefill_replicas > 0) != (deployment.decode_replicas > 0))
    found.emplace_back("prefill_replicas and decode_replicas need each other");
  if (!deployment.is_disaggregated()) return found;
  if (deployment.data_parallel_size != 1)
    found.emplace_back("prefill_replicas and decode_replicas take the place of data_parallel_size; leave it out");
  if (options.kv_retention.policy != RetentionPolicy::all)
    found.emplace_back("kv_cache.retention: only a whole KV cache is handed from a prefill to a decode replica");
  if (options.batching != Batching::continuous)
    found.emplace_back("engine.batching: static batches are not split into prefill and decode replicas");
  if (!kv_bandwidth(deployment, machine))
    found.push_back("machine " + machine.name + " has no link between its " + text(deployment.devices()) +
                    " for the KV cache; give deployment.kv_transfer.bandwidth");
  return found;
}

int layers_of_stage(const Deployment& deployment, const ModelShape& model, int stage) {
  const int stages = deployment.pipeline_parallel_size;
  return model.num_layers() / stages + (stage < model.num_layers() % stages ? 1 : 0);
}

int first_layer_of_stage(const Deployment& deployment, const ModelShape& model, int stage) {
  int first = 0;
  for (int before = 0; before < stage; ++before) first += layers_of_stage(deployment, model, before);
  return first;
}

ModelShape part_of_a_device(const Deployment& deployment, const ModelShape& model) {
  return with_layers(shard(model, deployment.tensor_parallel_size), layers_of_stage(deployment, model, 0));
}

DeviceLink stage_link(const Deployment& deployment, const Machine& machine, int stage) {
  return *link_among(machine, devices_on_the_way(deployment, machine, stage));
}

Seconds kv_sending_time(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                        Dtype kv_cache_dtype, int prompt_tokens) {
  const ModelShape part = part_of_a_device(deployment, model);
  const Bytes windows = part.has_compressed_entries() ? kv_residual_bytes(part, kv_cache_dtype, 0) : Bytes();
  const Bytes each = kv_bytes_per_token(part, kv_cache_dtype) * prompt_tokens + windows + recurrent_state_bytes(part);
  return each / *kv_bandwidth(deployment, machine);
}

Seconds kv_latency(const Deployment& deployment, const Machine& machine) {
  if (deployment.kv_transfer_latency) return *deployment.kv_transfer_latency;
  const std::optional<DeviceLink> link = link_among(machine, deployment.devices());
  return link ? link->latency : Seconds{};
}

}  // namespace dculab::sim
