#include "config/deployment_reader.hpp"

#include <array>
#include <string>
#include <utility>

#include "config/key_description.hpp"
#include "sim/hardware/figure_field.hpp"

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
struct DeviceKeys {
  using Target = sim::ReplicaDevices;
  static constexpr KeyTraits kDevices{.bounds = between(1, kMostOfAKind), .unit = "devices"};
  static constexpr auto keys = std::tuple(
      value("tensor_parallel_size", &sim::ReplicaDevices::tensor_parallel_size,
            "devices that share every layer: heads, MLP and vocabulary are divided, with whole groups of weights on "
            "each, and two all-reduces a layer",
            kDevices),
      value("pipeline_parallel_size", &sim::ReplicaDevices::pipeline_parallel_size,
            "stages of consecutive layers, each with `tensor_parallel_size` devices; there is a scheduler per stage, "
            "each with its part of the KV blocks",
            {.bounds = between(1, kMostOfAKind), .unit = "stages"}),
      value(
          "expert_parallel_size", [](sim::ReplicaDevices& devices) -> auto& { return devices.experts.size; },
          "devices of a replica that share the routed experts", kDevices),
      value("num_redundant_experts",
            [](sim::ReplicaDevices& devices) -> auto& { return devices.experts.num_redundant_experts; },
            "extra copies of the experts that get the most tokens",
            {.bounds = between(0, kMostRedundant), .unit = "experts"}),
      value("rebalance_interval",
            [](sim::ReplicaDevices& devices) -> auto& { return devices.experts.rebalance_interval; },
            "how often experts are placed again by the observed load",
            {.bounds = between(1, kLongestInterval), .absent = "never"}),
      word(
          "shared_experts", [](sim::ReplicaDevices& devices) -> auto& { return devices.experts.shared_experts; },
          kSharedExperts,
          "`replicated`: on every device; `placed`: copied and placed like a routed expert that every token chooses"),
      word("dispatch_dtype", [](sim::ReplicaDevices& devices) -> auto& { return devices.experts.dispatch_dtype; },
           kSentDtypes, "dtype in which tokens are sent; results return in 16 bits",
           {.absent = "FP8 where the experts' weights are, else `bf16`"}),
      value("micro_batches", [](sim::ReplicaDevices& devices) -> auto& { return devices.experts.micro_batches; },
            "2: their exchanges overlap with each other's arithmetic", {.bounds = between(1, 2), .unit = unit::count}));

  static void check(MapReader& reader, sim::ReplicaDevices& devices) {
    const sim::ExpertParallel& experts = devices.experts;
    if (experts.size % devices.tensor_parallel_size != 0 && experts.size > 1)
      reader.complain(*reader.node(), reader.path_to("expert_parallel_size") + ": " + std::to_string(experts.size) +
                                          " devices are no whole groups of tensor_parallel_size, " +
                                          std::to_string(devices.tensor_parallel_size));
  }
};

struct TransferKeys {
  using Target = sim::Deployment;
  static constexpr auto keys = std::tuple(
      value("bandwidth", &sim::Deployment::kv_transfer_bandwidth,
            "for each device of a prefill replica, towards decode replicas",
            {.bounds = sim::usual_bounds<BytesPerSecond>(),
             .absent = "the link's; on a CPU without one, a quarter of what memory sustains"}),
      value("latency", &sim::Deployment::kv_transfer_latency, "of a message from a prefill to a decode replica",
            {.bounds = between(0, 1e3), .absent = "the link's"}));
};

struct StoreKeys {
  using Target = sim::KvStore;
  static constexpr auto keys =
      std::tuple(value("read_bandwidth", &sim::KvStore::read_bandwidth,
                       "a store of the KV of prompts that all replicas read: bandwidth per node, shared by its devices",
                       {.bounds = sim::usual_bounds<BytesPerSecond>(), .necessity = Necessity::required}),
                 value("latency", &sim::KvStore::latency, "until the first byte arrives", {.bounds = between(0, 1e3)}),
                 value("hit_rate", &sim::KvStore::hit_rate, "of prompt tokens, that are read instead of computed",
                       {.bounds = between(0, 1),
                        .unit = unit::share,
                        .absent = "found: the blocks that an earlier prompt also began with"}));
};

struct SwitchingKeys {
  using Target = RoleSwitching;
  static constexpr KeyTraits kSteps{.bounds = between(0, 1e6), .unit = "steps"};
  static constexpr KeyTraits kShare{.bounds = between(0, 1e6), .unit = unit::share};
  static constexpr auto keys = std::tuple(
      value("prefill_above", &RoleSwitching::prefill_above,
            "steps' worth of prompt tokens that wait for each prefill replica, above which a decode replica helps",
            kSteps),
      value("prefill_below", &RoleSwitching::prefill_below, "the same, below which a prefill replica can be spared",
            kSteps),
      value("decode_above", &RoleSwitching::decode_above,
            "of a decode replica's sequences or slots in use, above which a prefill replica helps", kShare),
      value("decode_below", &RoleSwitching::decode_below, "the same, below which a decode replica can be spared",
            kShare),
      value("hold", &RoleSwitching::hold, "how long the condition must hold, and the minimum time between changes",
            {.bounds = between(0, kLongestInterval)}));
};

struct DeploymentKeys {
  using Target = sim::Deployment;
  static constexpr KeyTraits kPool{
      .bounds = between(1, kMostOfAKind), .unit = "replicas", .absent = "`data_parallel_size` replicas do both"};
  static constexpr auto keys = std::tuple(
      value("data_parallel_size", &sim::Deployment::data_parallel_size, "replicas, each with all of these devices",
            {.bounds = between(1, kMostOfAKind), .unit = "replicas"}),
      value("prefill_replicas", &sim::Deployment::prefill_replicas,
            "instead of `data_parallel_size`: some replicas compute prompts", kPool),
      value("decode_replicas", &sim::Deployment::decode_replicas, "and the others answers", kPool),
      word("routing", &sim::Deployment::routing, kRoutings, "which replica (of a pool) takes a request"),
      section<TransferKeys>("kv_transfer", [](sim::Deployment& deployment) -> auto& { return deployment; },
                            "how the KV of a prompt crosses from prefill to decode replicas",
                            {.absent = "over the machine's link"}),
      section<StoreKeys>("kv_store", &sim::Deployment::kv_store, "KV of prompts' first tokens that many replicas read",
                         {.absent = "none"}),
      section<SwitchingKeys>("role_switching", &sim::Deployment::role_switching,
                             "three or more equal replicas change between prefill and decode", {.absent = "none"}));
};

// What only decode replicas have.
struct DecodeKeys {
  using Target = std::string;
  static constexpr auto keys = std::tuple(value(
      "machine", [](std::string& machine) -> auto& { return machine; },
      "of decode replicas, where it is another kind: a file, or a name under hwmodels", {.absent = "the scenario's"}));
};

// A pool's own settings, which begin at the deployment's.
void read_pool(MapReader settings, const sim::ReplicaDevices& all, std::optional<sim::ReplicaDevices>& pool,
               std::string* machine = nullptr) {
  if (!settings.is_present()) return;
  pool = all;
  read_keys<DeviceKeys>(settings, *pool);
  if (machine != nullptr) read_keys<DecodeKeys>(settings, *machine);
  settings.finish();
}

}  // namespace

void read_deployment(MapReader reader, sim::Deployment& deployment, std::string& decode_machine) {
  sim::ReplicaDevices all;
  read_keys<DeviceKeys>(reader, all);
  deployment.tensor_parallel_size = all.tensor_parallel_size;
  deployment.pipeline_parallel_size = all.pipeline_parallel_size;
  deployment.experts = all.experts;
  read_keys<DeploymentKeys>(reader, deployment);
  read_pool(reader.optional_map("prefill"), all, deployment.prefill);
  read_pool(reader.optional_map("decode"), all, deployment.decode, &decode_machine);
  if (const std::int64_t devices = deployment.devices(); devices > kMostDevices)
    reader.complain(*reader.node(), "deployment: has " + std::to_string(devices) + " devices; at most " +
                                        std::to_string(kMostDevices) + " can be simulated");
  reader.finish();
}

std::vector<FileKey> deployment_keys() {
  std::vector<FileKey> keys = keys_of<DeviceKeys>();
  for (FileKey& key : keys_of<DeploymentKeys>()) keys.push_back(std::move(key));
  keys.push_back(
      map_key("prefill", "settings of prefill replicas that replace the deployment's own", keys_of<DeviceKeys>()));
  std::vector<FileKey> decode = keys_of<DeviceKeys>();
  for (FileKey& key : keys_of<DecodeKeys>()) decode.push_back(std::move(key));
  keys.push_back(map_key("decode", "the same of decode replicas", std::move(decode)));
  return keys;
}

}  // namespace dculab::config
