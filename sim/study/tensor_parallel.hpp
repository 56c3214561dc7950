// What one of several devices does when they share every layer: Megatron's split, two all-reduces a layer.
//
//   shard       heads, KV heads (at least one each), MLP width and vocabulary, each divided by the devices
//   all-reduce  min over protocols of  base + 2 (p - 1) * hop + 2 (p - 1) / p * bytes / (link * share)
//   step        2 * layers * all-reduce of tokens * hidden values
//
// More devices than a server has exchange over the network, every hop with its latency on top.
//
// Sources: Shoeybi et al. 2019, "Megatron-LM", section 3; NCCL's own model of its ring, src/graph/tuning.cc@01afd20
// (NVLink; RCCL and xGMI are taken to be alike: an assumption).
#pragma once

#include "core/model_shape.hpp"
#include "core/step_plan.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Everything that keeps `model` from being split over `devices`; empty when nothing does.
[[nodiscard]] std::vector<std::string> shard_problems(const Machine& machine, const ModelShape& model, int devices);

// The part of each device. Precondition: shard_problems is empty.
[[nodiscard]] ModelShape shard(const ModelShape& model, int devices);

[[nodiscard]] Seconds all_reduce_time(BytesPerSecond link, int devices, Bytes bytes);

// All-reduces of one step. Precondition: shard_problems is empty.
[[nodiscard]] Seconds exchange_time(const Machine& machine, const ModelShape& model, const StepPlan& plan, int devices,
                                    Dtype activation_dtype);

}  // namespace dculab::sim
