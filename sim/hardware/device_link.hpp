// What carries bytes from one device to another: the server's own link, or the network between servers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct DeviceLink {
  BytesPerSecond peak;       // of each device, one direction
  BytesPerSecond bandwidth;  // of it, what messages sustain
  Seconds latency;           // of a message's first byte, the mean round a ring
};

// The figure under a key of kLinks (machine_fields.hpp), which begins at 0 where the machine states none. False for any
// other key.
bool begin_link(Machine& machine, std::string_view key);

// Of `devices` devices, those in the first one's server, which sees its peers' link however many of them take part.
[[nodiscard]] int devices_of_a_server(const Machine& machine, int devices);

// Whether `devices` fit in one server: a machine file that does not say how many `peers` there are sets no limit.
[[nodiscard]] bool share_a_server(const Machine& machine, int devices);

// The links among `devices` devices, peer_link within a server and network_link beyond; nothing when the machine file
// has none. Where each peer has a link of its own, fewer of them use fewer links. A latency that is not known is 0.
[[nodiscard]] std::optional<DeviceLink> link_among(const Machine& machine, int devices);

// Everything that keeps `devices` devices from sharing every layer of `model`: no link, or what does not divide
// (model/shard.hpp). Empty when nothing does.
[[nodiscard]] std::vector<std::string> sharing_problems(const Machine& machine, const ModelShape& model,
                                                        WeightFormat layers, int devices);

// Everything that keeps `devices` devices from exchanging tokens; empty when nothing does.
[[nodiscard]] std::vector<std::string> token_exchange_problems(const Machine& machine, int devices);

}  // namespace dculab::sim
