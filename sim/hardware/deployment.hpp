// How many devices serve a model, and how they share the work. Words: vLLM's.
//
//   tensor parallel    the devices of a stage share every layer, see model/shard.hpp
//   pipeline parallel  a replica's stages have consecutive layers
//   expert parallel    a replica's devices share the routed experts, and attention is in data parallel among groups of
//                      tensor_parallel_size of them, see model/expert_shard.hpp
//   data parallel      replicas of the whole model, a router in front
//   disaggregated      some replicas prefill only, others decode only; the KV cache of a prompt crosses a link between
//                      (Zhong et al. 2024, DistServe; Patel et al. 2024, Splitwise)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "core/replica_roles.hpp"
#include "core/router.hpp"
#include "model/expert_shard.hpp"
#include "model/few_heads.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/device_link.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Of a replica whose devices share the routed experts.
struct ExpertParallel {
  int size = 1;                                 // devices: vLLM's TP x DP, SGLang's ep_size; 1: none
  int num_redundant_experts = 0;                // copies beside the first, of those that get the most tokens
  std::optional<Seconds> rebalance_interval{};  // how often all are placed anew; absent: once
  SharedExperts shared_experts = SharedExperts::replicated;
  std::optional<Dtype> dispatch_dtype{};  // absent: FP8 where the experts' weights are
  int micro_batches = 1;                  // 2: each hides its exchanges behind the other (sim/cost/micro_batches.hpp)
};

// How the devices of a replica share the model.
struct ReplicaDevices {
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  ExpertParallel experts{};

  [[nodiscard]] bool shares_experts() const { return experts.size > 1; }
  [[nodiscard]] int devices() const {
    return shares_experts() ? experts.size : tensor_parallel_size * pipeline_parallel_size;
  }
  // Groups of devices that have sequences of their own.
  [[nodiscard]] int ranks() const { return shares_experts() ? experts.size / tensor_parallel_size : 1; }
};

// KV of prompts' first tokens that many replicas can read, over the network of each node.
struct KvStore {
  BytesPerSecond read_bandwidth;  // of a node
  Seconds latency{};
  std::optional<double> hit_rate{};  // of prompt tokens; absent: blocks that an earlier prompt began with too
};

struct Deployment {
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  int data_parallel_size = 1;
  Routing routing = Routing::round_robin;
  int prefill_replicas = 0;  // either both pools or none, which are in the place of data_parallel_size
  int decode_replicas = 0;
  std::optional<BytesPerSecond> kv_transfer_bandwidth{};  // of each device; absent: that of the machine's link
  std::optional<Seconds> kv_transfer_latency{};
  ExpertParallel experts{};
  std::optional<ReplicaDevices> prefill{}, decode{};  // what replicas of a pool have in place of the above
  std::optional<KvStore> kv_store{};
  std::optional<RoleSwitching> role_switching{};  // of replicas between the pools; absent: the pools stay as they are

  [[nodiscard]] bool is_disaggregated() const { return prefill_replicas > 0; }
  [[nodiscard]] int replicas() const {
    return is_disaggregated() ? prefill_replicas + decode_replicas : data_parallel_size;
  }
  [[nodiscard]] ReplicaDevices of(ReplicaRole role) const {
    const ReplicaDevices all{tensor_parallel_size, pipeline_parallel_size, experts};
    if (role == ReplicaRole::prefill) return prefill.value_or(all);
    return role == ReplicaRole::decode ? decode.value_or(all) : all;
  }
  [[nodiscard]] std::int64_t devices() const {
    if (!is_disaggregated()) return std::int64_t{data_parallel_size} * of(ReplicaRole::both).devices();
    return std::int64_t{prefill_replicas} * of(ReplicaRole::prefill).devices() +
           std::int64_t{decode_replicas} * of(ReplicaRole::decode).devices();
  }
  [[nodiscard]] bool shares_experts() const {
    return of(ReplicaRole::both).shares_experts() || of(ReplicaRole::prefill).shares_experts() ||
           of(ReplicaRole::decode).shares_experts();
  }
};

// The roles of the deployment's replicas, those that take new requests first.
[[nodiscard]] std::vector<ReplicaRole> pools_of(const Deployment& deployment);

// Everything that keeps the devices from sharing the work like that; empty when nothing does. `decode_machine`: of
// decode replicas, where it is another.
[[nodiscard]] std::vector<std::string> problems(const Deployment& deployment, const Machine& machine,
                                                const ModelShape& model, const EngineOptions& options,
                                                const Machine* decode_machine = nullptr);

// Of pools on two kinds of machine: KV crosses the slower of their network links, unless the deployment has its own.
// Precondition: problems() with the decode machine are empty.
[[nodiscard]] Deployment with_link_between(Deployment deployment, const Machine& prefill, const Machine& decode);

// The same of the devices of one replica.
[[nodiscard]] std::vector<std::string> problems(const ReplicaDevices& devices, const Machine& machine,
                                                const ModelShape& model, const EngineOptions& options);

// Where the machine's devices share experts.
[[nodiscard]] ExpertSharing expert_sharing(const ReplicaDevices& devices, const Machine& machine);

// Layers of a stage: as equal as can be, the first ones get what is over.
[[nodiscard]] int layers_of_stage(const ReplicaDevices& devices, const ModelShape& model, int stage);

// The first layer of a stage.
[[nodiscard]] int first_layer_of_stage(const ReplicaDevices& devices, const ModelShape& model, int stage);

// A device's part of every layer: of an expert-parallel group that of the device with the most work. Precondition of
// all below: problems() is empty.
[[nodiscard]] ModelShape part_of_layers(const ReplicaDevices& devices, const Machine& machine, const ModelShape& model,
                                        const EngineOptions& options);

// Of steps with few heads, of a model that has two sets: see model/few_heads.hpp. Parts of few heads may be the same on
// several devices.
[[nodiscard]] EngineOptions options_of_few(const ReplicaDevices& devices, const Machine& machine,
                                           const ModelShape& many, const ModelShape& few, const EngineOptions& options);

// What the fullest device of a replica holds: its part of the heads and of the layers of the stage with the most bytes
// of weights, with embedding and head.
[[nodiscard]] ModelShape part_of_a_device(const ReplicaDevices& devices, const Machine& machine,
                                          const ModelShape& model, const EngineOptions& options);

// Of a replica whose experts are placed anew from time to time, what a second of work takes: 1 where none are. Every
// expert that a device holds arrives over the network, or over the server's link, while nothing else is done.
[[nodiscard]] double rebalancing_factor(const ReplicaDevices& devices, const Machine& machine, const ModelShape& part,
                                        const EngineOptions& options);

// From stage `stage` to the next.
[[nodiscard]] DeviceLink stage_link(const ReplicaDevices& devices, const Machine& machine, int stage);

// Until the KV cache of a prompt has left its prefill replica: each device sends its part.
[[nodiscard]] Seconds kv_sending_time(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                                      Dtype kv_cache_dtype, int prompt_tokens);
[[nodiscard]] Seconds kv_latency(const Deployment& deployment, const Machine& machine);

// Until a group of devices with sequences of their own has read the KV of `tokens` tokens from the store, while all
// groups of its node read as much. Precondition: deployment.kv_store.
[[nodiscard]] Seconds store_reading_time(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                                         Dtype kv_cache_dtype, int tokens);

}  // namespace dculab::sim
