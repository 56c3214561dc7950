#include "sim/study/tensor_parallel.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "sim/hardware/device_link.hpp"

namespace dculab::sim {
namespace {

// NCCL's ring on NVLink: LL, LL128, Simple.
struct Protocol {
  Seconds base;
  Seconds hop;
  double share;  // of the link's bandwidth
};
constexpr std::array<Protocol, 3> kRing{{
    {Seconds(3.6e-6), Seconds(0.47e-6), 0.25},
    {Seconds(10.0e-6), Seconds(1.9e-6), 0.92},
    {Seconds(8.4e-6), Seconds(3.4e-6), 1.0},
}};

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

Seconds all_reduce_time(BytesPerSecond link, int devices, Bytes bytes) {
  const double hops = 2.0 * (devices - 1);
  Seconds best(std::numeric_limits<double>::infinity());
  for (const Protocol& protocol : kRing)
    best = std::min(best, protocol.base + hops * protocol.hop + hops / devices * (bytes / (link * protocol.share)));
  return best;
}

Seconds exchange_time(const Machine& machine, const ModelShape& model, const StepPlan& plan, int devices,
                      Dtype activation_dtype) {
  if (devices == 1) return {};
  const Bytes bytes = storage(activation_dtype, static_cast<double>(plan.batch.num_tokens()) * model.hidden_size);
  const DeviceLink link = *link_among(machine, devices);
  Seconds each = all_reduce_time(link.bandwidth, devices, bytes);
  if (!share_a_server(machine, devices)) each += 2.0 * (devices - 1) * link.latency;
  return 2.0 * model.num_hidden_layers * each;
}

}  // namespace dculab::sim
