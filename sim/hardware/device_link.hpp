// What carries bytes from one device to another: the server's own link, or the network between servers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct DeviceLink {
  BytesPerSecond bandwidth;  // of each device, one direction
  Seconds latency;           // of a message's first byte
};

// Whether `devices` fit in one server: a machine file that does not say how many `peers` there are sets no limit.
[[nodiscard]] bool share_a_server(const Machine& machine, int devices);

// The link among so many devices, peer_link within a server and network_link beyond; nothing when the machine file has
// none. A latency that is not known is 0.
[[nodiscard]] std::optional<DeviceLink> link_among(const Machine& machine, int devices);

// Everything that keeps so many devices from sharing every layer of `model`: no link, or what does not divide
// (core/shard.hpp). Empty when nothing does.
[[nodiscard]] std::vector<std::string> sharing_problems(const Machine& machine, const ModelShape& model, int devices);

}  // namespace dculab::sim
