// What one of several devices does when they share every layer: Megatron's split, two all-reduces a layer.
//
//   shard    heads, KV heads (at least one each), MLP width and vocabulary, each divided by the devices
//   pass     min over protocols of  start + hops * hop + (p - 1) / p * bytes / (link * share)
//   step     2 * layers + 1 all-reduces of tokens * hidden values, each two passes with one start: every layer's two
//   and
//            the embedding's; then the logits of the rows that are sampled, one pass
//
// A pass takes p - 1 hops round a ring. Where every device has a link of its own to every other (`direct_peers`), it
// takes one, as RCCL's all-pairs algorithms and vLLM's own all-reduce do. `start` and `hop` are the machine's
// (collective_start, peer_latency; network_latency among more devices than a server has), given for the protocol of the
// smallest messages, LL. LL128 and Simple start and hop later by what NCCL says of NVLink; RCCL's figures differ from
// each other by as much.
//
// Sources: Shoeybi et al. 2019, "Megatron-LM", section 3; NCCL's model of its ring, src/graph/tuning.cc@01afd20; the
// same file and tools/msccl-algorithms of ROCm/rccl@9e22c79; vLLM's vocab_parallel_embedding.py and
// logits_processor.py.
#pragma once

#include "core/model_shape.hpp"
#include "core/step_plan.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Everything that keeps `model` from being split over `devices`; empty when nothing does.
[[nodiscard]] std::vector<std::string> shard_problems(const Machine& machine, const ModelShape& model, int devices);

// The part of each device. Precondition: shard_problems is empty.
[[nodiscard]] ModelShape shard(const ModelShape& model, int devices);

// Of `bytes` on each device. Precondition: link_among(machine, devices).
[[nodiscard]] Seconds all_reduce_time(const Machine& machine, int devices, Bytes bytes);

// Of `bytes` on all devices together, which each of them gets. Precondition: the same.
[[nodiscard]] Seconds gather_time(const Machine& machine, int devices, Bytes bytes);

// All-reduces and the gather of one step. Precondition: shard_problems is empty.
[[nodiscard]] Seconds exchange_time(const Machine& machine, const ModelShape& model, const StepPlan& plan, int devices,
                                    Dtype activation_dtype);

}  // namespace dculab::sim
