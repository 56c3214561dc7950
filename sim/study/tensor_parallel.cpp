#include "sim/study/tensor_parallel.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "sim/hardware/device_link.hpp"

namespace dculab::sim {
namespace {

// LL, LL128, Simple: how much later each starts and hops than LL, and what it reaches of the link.
struct Protocol {
  Seconds later_start;
  Seconds later_hop;
  double share;
};
constexpr std::array<Protocol, 3> kProtocols{{
    {Seconds(), Seconds(), 0.25},
    {Seconds(6.4e-6), Seconds(1.43e-6), 0.92},
    {Seconds(4.8e-6), Seconds(2.93e-6), 1.0},
}};
constexpr Seconds kNcclStart(3.6e-6);

[[nodiscard]] Seconds time_of_passes(const Machine& machine, int devices, Bytes bytes, int passes) {
  const DeviceLink link = *link_among(machine, devices);
  const int others = devices - 1;
  const bool direct = share_a_server(machine, devices) && others <= machine.direct_peers.value_or(0);
  const double hops = passes * (direct ? 1 : others);
  const Bytes sent = passes * static_cast<double>(others) / devices * bytes;
  Seconds best(std::numeric_limits<double>::infinity());
  for (const Protocol& protocol : kProtocols)
    best = std::min(best, machine.collective_start.value_or(kNcclStart) + protocol.later_start +
                              hops * (link.latency + protocol.later_hop) + sent / (link.bandwidth * protocol.share));
  return best;
}

}  // namespace

std::vector<std::string> shard_problems(const Machine& machine, const ModelShape& model, int devices) {
  std::vector<std::string> found;
  const std::string over = " over " + std::to_string(devices) + " devices";
  if (devices == 1) return found;
  if (!link_among(machine, devices)) {
    const char* link = share_a_server(machine, devices) ? "peer_link" : "network_link";
    found.push_back("machine " + machine.name + " has no " + link + " to exchange results" + over);
  }
  if (model.num_attention_heads % devices != 0)
    found.push_back(std::to_string(model.num_attention_heads) + " query heads do not divide" + over);
  if (model.num_key_value_heads % devices != 0 && devices % model.num_key_value_heads != 0)
    found.push_back(std::to_string(model.num_key_value_heads) + " KV heads do not divide" + over);
  if (model.intermediate_size % devices != 0)
    found.push_back("an MLP of width " + std::to_string(model.intermediate_size) + " does not divide" + over);
  return found;
}

ModelShape shard(const ModelShape& model, int devices) {
  ModelShape part = model;
  part.num_attention_heads /= devices;
  part.num_key_value_heads = std::max(1, model.num_key_value_heads / devices);
  part.intermediate_size /= devices;
  part.vocab_size = (model.vocab_size + devices - 1) / devices;
  return part;
}

Seconds all_reduce_time(const Machine& machine, int devices, Bytes bytes) {
  return time_of_passes(machine, devices, bytes, 2);
}

Seconds gather_time(const Machine& machine, int devices, Bytes bytes) {
  return time_of_passes(machine, devices, bytes, 1);
}

Seconds exchange_time(const Machine& machine, const ModelShape& model, const StepPlan& plan, int devices,
                      Dtype activation_dtype) {
  if (devices == 1) return {};
  const auto tokens = static_cast<double>(plan.batch.num_tokens());
  const Bytes hidden = storage(activation_dtype, tokens * model.hidden_size);
  const Seconds sums = (2.0 * model.num_hidden_layers + 1) * all_reduce_time(machine, devices, hidden);
  double rows = 0;
  for (const SequenceSlice& slice : plan.batch.sequences) rows += slice.num_logits;
  if (rows == 0) return sums;
  return sums + gather_time(machine, devices, storage(activation_dtype, rows * model.vocab_size));
}

}  // namespace dculab::sim
