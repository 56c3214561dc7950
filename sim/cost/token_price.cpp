#include "sim/cost/token_price.hpp"

#include <algorithm>

#include "sim/cost/energy.hpp"

namespace dculab::sim {
namespace {

constexpr double kSecondsPerHour = 3600;

}  // namespace

double machines_of(const Machine& machine, const Deployment& deployment) {
  if (!deployment.is_disaggregated()) return machines_of(machine, deployment, ReplicaRole::both);
  return machines_of(machine, deployment, ReplicaRole::prefill) + machines_of(machine, deployment, ReplicaRole::decode);
}

double machines_of(const Machine& machine, const Deployment& deployment, ReplicaRole pool) {
  const ReplicaDevices devices = deployment.of(pool);
  const int replicas = pool == ReplicaRole::both      ? deployment.data_parallel_size
                       : pool == ReplicaRole::prefill ? deployment.prefill_replicas
                                                      : deployment.decode_replicas;
  const bool on_gpu = machine.kind == lower::DeviceKind::gpu;
  return static_cast<double>(replicas) * (on_gpu ? devices.devices() : devices.pipeline_parallel_size);
}

StepCost step_cost(const Machine& machine, const ModelShape& part, const StepPlan& plan, const StepPrice& price) {
  const double sharing = part.tensor_parallel_size;
  StepCost cost{.devices = machine.kind == lower::DeviceKind::gpu ? sharing : 1};
  if (machine.power.is_stated())
    cost.energy = cost.devices * (*machine.power.idle * price.seconds) + sharing * active_energy(machine, plan, price);
  if (machine.price_per_hour)
    cost.usd = cost.devices * *machine.price_per_hour * price.seconds.value() / kSecondsPerHour;
  return cost;
}

double output_tokens(const Batch& batch) {
  return static_cast<double>(
      std::ranges::count_if(batch.sequences, [](const SequenceSlice& slice) { return slice.num_logits > 0; }));
}

double usd_per_million_tokens(double price_per_hour, double devices, double tokens_per_second) {
  constexpr double kMillion = 1e6;
  return price_per_hour * devices / (tokens_per_second * kSecondsPerHour) * kMillion;
}

std::optional<double> usd_per_million_tokens(const Machine& machine, const Deployment& deployment,
                                             double tokens_per_second) {
  if (!machine.price_per_hour) return std::nullopt;
  return usd_per_million_tokens(*machine.price_per_hour, machines_of(machine, deployment), tokens_per_second);
}

}  // namespace dculab::sim
