#include "study/decide/replica_layouts.hpp"

#include <algorithm>
#include <functional>

namespace dculab::study {
namespace {

[[nodiscard]] bool is_power_of_two(int value) { return (value & (value - 1)) == 0; }

}  // namespace

int FleetOffer::replicas_of_server(const sim::ReplicaDevices& replica) const {
  return one_replica_a_server ? 1 : std::max(1, devices / replica.devices());
}

int FleetOffer::servers_of_replica(const sim::ReplicaDevices& replica) const {
  return (replica.devices() + devices - 1) / devices;
}

std::optional<int> FleetOffer::most_replicas(const sim::ReplicaDevices& replica) const {
  if (!servers) return std::nullopt;
  return *servers / servers_of_replica(replica) * replicas_of_server(replica);
}

int FleetOffer::servers_for(const std::vector<Replicas>& replicas) const {
  std::vector<int> sizes, free;  // devices, of replicas and left in each server
  for (const Replicas& each : replicas)
    sizes.insert(sizes.end(), static_cast<std::size_t>(each.count), each.devices.devices());
  if (one_replica_a_server) return static_cast<int>(sizes.size());
  std::ranges::sort(sizes, std::greater<>());
  for (const int size : sizes) {
    const auto room = std::ranges::find_if(free, [size](int left) { return left >= size; });
    if (room == free.end())
      free.push_back(devices - size);
    else
      *room -= size;
  }
  return static_cast<int>(free.size());
}

std::vector<sim::ReplicaDevices> replica_layouts(const ModelShape& model, int most) {
  std::vector<sim::ReplicaDevices> layouts;
  const auto is_size = [most](int size) { return most % size == 0 || is_power_of_two(size); };
  for (int devices = 1; devices <= most; ++devices) {
    if (!is_size(devices)) continue;
    for (int stages = 1; stages <= devices; ++stages)
      if (devices % stages == 0)
        layouts.push_back({.tensor_parallel_size = devices / stages, .pipeline_parallel_size = stages});
    if (!model.has_experts() || devices == 1) continue;
    for (int shared = 1; shared <= devices; shared *= 2)
      if (devices % shared == 0) layouts.push_back({.tensor_parallel_size = shared, .experts = {.size = devices}});
  }
  return layouts;
}

void set_replica(const sim::ReplicaDevices& devices, sim::Deployment& deployment) {
  deployment.tensor_parallel_size = devices.tensor_parallel_size;
  deployment.pipeline_parallel_size = devices.pipeline_parallel_size;
  deployment.experts = devices.experts;
}

std::string layout_text(const sim::ReplicaDevices& devices) {
  const std::string shared = "TP " + std::to_string(devices.tensor_parallel_size);
  if (devices.shares_experts())
    return "EP " + std::to_string(devices.experts.size) +
           (devices.tensor_parallel_size > 1 ? ", " + shared : std::string());
  return devices.pipeline_parallel_size > 1 ? shared + " x PP " + std::to_string(devices.pipeline_parallel_size)
                                            : shared;
}

}  // namespace dculab::study
