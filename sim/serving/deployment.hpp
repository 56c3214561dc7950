// How many devices serve a model, and how they share the work. Words: vLLM's.
//
//   tensor parallel    the devices of a stage share every layer, see model/shard.hpp
//   pipeline parallel  a replica's stages have consecutive layers
//   data parallel      replicas of the whole model, a router in front
//   disaggregated      some replicas prefill only, others decode only; the KV cache of a prompt crosses a link between
//                      (Zhong et al. 2024, DistServe; Patel et al. 2024, Splitwise)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/device_link.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/serving/router.hpp"

namespace dculab::sim {

struct Deployment {
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  int data_parallel_size = 1;
  Routing routing = Routing::round_robin;
  int prefill_replicas = 0;  // either both pools or none, which are in the place of data_parallel_size
  int decode_replicas = 0;
  std::optional<BytesPerSecond> kv_transfer_bandwidth{};  // of each device; absent: that of the machine's link
  std::optional<Seconds> kv_transfer_latency{};

  [[nodiscard]] bool is_disaggregated() const { return prefill_replicas > 0; }
  [[nodiscard]] int replicas() const {
    return is_disaggregated() ? prefill_replicas + decode_replicas : data_parallel_size;
  }
  [[nodiscard]] int devices_per_replica() const { return tensor_parallel_size * pipeline_parallel_size; }
  [[nodiscard]] int devices() const { return replicas() * devices_per_replica(); }
};

// Everything that keeps the devices from sharing the work like that; empty when nothing does.
[[nodiscard]] std::vector<std::string> problems(const Deployment& deployment, const Machine& machine,
                                                const ModelShape& model, const EngineOptions& options);

// Layers of a stage: as equal as can be, the first ones get what is over.
[[nodiscard]] int layers_of_stage(const Deployment& deployment, const ModelShape& model, int stage);

// The first layer of a stage.
[[nodiscard]] int first_layer_of_stage(const Deployment& deployment, const ModelShape& model, int stage);

// What the fullest device of a replica holds: its part of the heads and layers, with embedding and head.
[[nodiscard]] ModelShape part_of_a_device(const Deployment& deployment, const ModelShape& model);

// From stage `stage` to the next. Precondition of all below: problems() is empty.
[[nodiscard]] DeviceLink stage_link(const Deployment& deployment, const Machine& machine, int stage);

// Until the KV cache of a prompt has left its prefill replica: each device sends its part.
[[nodiscard]] Seconds kv_sending_time(const Deployment& deployment, const Machine& machine, const ModelShape& model,
                                      Dtype kv_cache_dtype, int prompt_tokens);
[[nodiscard]] Seconds kv_latency(const Deployment& deployment, const Machine& machine);

}  // namespace dculab::sim
