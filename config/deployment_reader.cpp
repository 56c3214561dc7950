#include "config/deployment_reader.hpp"

#include <array>
#include <string>

#include "config/machine_fields.hpp"

namespace dculab::config {
namespace {

constexpr int kMostOfAKind = 1024;
constexpr int kMostRedundant = 1 << 14;
constexpr std::int64_t kMostDevices = 1 << 16;
constexpr double kLongestInterval = 1e7;
constexpr auto kRoutings = std::to_array<Choice<Routing>>({{"round_robin", Routing::round_robin},
                                                           {"random", Routing::random},
                                                           {"least_requests", Routing::least_requests},
                                                           {"least_tokens", Routing::least_tokens},
                                                           {"prefix_affinity", Routing::prefix_affinity}});
constexpr auto kSharedExperts = std::to_array<Choice<SharedExperts>>(
    {{"replicated", SharedExperts::replicated}, {"placed", SharedExperts::placed}});
constexpr auto kSentDtypes = std::to_array<Choice<Dtype>>(
    {{"bf16", Dtype::bf16}, {"f16", Dtype::f16}, {"fp8_e4m3", Dtype::fp8_e4m3}, {"int8", Dtype::int8}});

// What a replica's devices share, in the deployment itself or in the settings of a pool.
void read_devices(MapReader& reader, sim::ReplicaDevices& devices) {
  sim::ExpertParallel& experts = devices.experts;
  for (const auto& [key, size] : {std::pair{"tensor_parallel_size", &devices.tensor_parallel_size},
                                  {"pipeline_parallel_size", &devices.pipeline_parallel_size},
                                  {"expert_parallel_size", &experts.size}})
    reader.optional(key, *size, between(1, kMostOfAKind));
  reader.optional("num_redundant_experts", experts.num_redundant_experts, between(0, kMostRedundant));
  if (const Node* interval = reader.optional("rebalance_interval"))
    reader.read(*interval, experts.rebalance_interval.emplace(), between(1, kLongestInterval));
  reader.optional("shared_experts", experts.shared_experts, kSharedExperts);
  if (const Node* dtype = reader.optional("dispatch_dtype"))
    reader.read_choice(*dtype, experts.dispatch_dtype.emplace(), kSentDtypes);
  reader.optional("micro_batches", experts.micro_batches, between(1, 2));
  if (experts.size % devices.tensor_parallel_size != 0 && experts.size > 1)
    reader.complain(*reader.node(), reader.path_to("expert_parallel_size") + ": " + std::to_string(experts.size) +
                                        " devices are no whole groups of tensor_parallel_size, " +
                                        std::to_string(devices.tensor_parallel_size));
}

// A pool's own settings, which begin at the deployment's.
void read_pool(MapReader& reader, std::string_view key, const sim::ReplicaDevices& all,
               std::optional<sim::ReplicaDevices>& pool) {
  MapReader settings = reader.optional_map(key);
  if (!settings.is_present()) return;
  pool = all;
  read_devices(settings, *pool);
  settings.finish();
}

void read_transfer(MapReader transfer, sim::Deployment& deployment) {
  if (const Node* bandwidth = transfer.optional("bandwidth"))
    transfer.read(*bandwidth, deployment.kv_transfer_bandwidth.emplace(),
                  allowed_figure<BytesPerSecond>("kv_transfer.bandwidth"));
  if (const Node* latency = transfer.optional("latency"))
    transfer.read(*latency, deployment.kv_transfer_latency.emplace(), between(0, 1e3));
  transfer.finish();
}

void read_store(MapReader reader, std::optional<sim::KvStore>& store) {
  if (!reader.is_present()) return;
  store.emplace();
  reader.required("read_bandwidth", store->read_bandwidth, allowed_figure<BytesPerSecond>("kv_store.read_bandwidth"));
  reader.optional("latency", store->latency, between(0, 1e3));
  if (const Node* rate = reader.optional("hit_rate")) reader.read(*rate, store->hit_rate.emplace(), between(0, 1));
  reader.finish();
}

void read_switching(MapReader reader, std::optional<RoleSwitching>& switching) {
  if (!reader.is_present()) return;
  RoleSwitching& read = switching.emplace();
  for (const auto& [key, figure] : {std::pair{"prefill_above", &read.prefill_above},
                                    {"prefill_below", &read.prefill_below},
                                    {"decode_above", &read.decode_above},
                                    {"decode_below", &read.decode_below}})
    reader.optional(key, *figure, between(0, 1e6));
  reader.optional("hold", read.hold, between(0, kLongestInterval));
  reader.finish();
}

}  // namespace

void read_deployment(MapReader reader, sim::Deployment& deployment) {
  sim::ReplicaDevices all;
  read_devices(reader, all);
  deployment.tensor_parallel_size = all.tensor_parallel_size;
  deployment.pipeline_parallel_size = all.pipeline_parallel_size;
  deployment.experts = all.experts;
  for (const auto& [key, size] : {std::pair{"data_parallel_size", &deployment.data_parallel_size},
                                  {"prefill_replicas", &deployment.prefill_replicas},
                                  {"decode_replicas", &deployment.decode_replicas}})
    reader.optional(key, *size, between(1, kMostOfAKind));
  read_pool(reader, "prefill", all, deployment.prefill);
  read_pool(reader, "decode", all, deployment.decode);
  if (const std::int64_t devices = deployment.devices(); devices > kMostDevices)
    reader.complain(*reader.node(), "deployment: has " + std::to_string(devices) + " devices; at most " +
                                        std::to_string(kMostDevices) + " can be simulated");
  reader.optional("routing", deployment.routing, kRoutings);
  read_transfer(reader.optional_map("kv_transfer"), deployment);
  read_store(reader.optional_map("kv_store"), deployment.kv_store);
  read_switching(reader.optional_map("role_switching"), deployment.role_switching);
  reader.finish();
}

}  // namespace dculab::config
