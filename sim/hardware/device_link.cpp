#include "sim/hardware/device_link.hpp"

namespace dculab::sim {

bool share_a_server(const Machine& machine, int devices) { return !machine.peers || devices <= 1 + *machine.peers; }

std::optional<DeviceLink> link_among(const Machine& machine, int devices) {
  const bool near = share_a_server(machine, devices);
  const std::optional<BytesPerSecond>& bandwidth = near ? machine.peer_link : machine.network_link;
  const std::optional<Seconds>& latency = near ? machine.peer_latency : machine.network_latency;
  if (!bandwidth) return std::nullopt;
  return DeviceLink{*bandwidth, latency.value_or(Seconds{})};
}

}  // namespace dculab::sim
