#include "sim/hardware/device_link.hpp"

#include <algorithm>

#include "model/shard.hpp"
#include "sim/hardware/machine_fields.hpp"

namespace dculab::sim {

bool begin_link(Machine& machine, std::string_view key) {
  const auto field =
      std::ranges::find_if(kLinks, [key](const FigureField<Machine>& each) { return each.info.key == key; });
  if (field == kLinks.end()) return false;
  visit_figure(machine, *field, [](auto& figure) {
    if constexpr (requires { figure.emplace(); })
      if (!figure) figure.emplace();
  });
  return true;
}

int devices_of_a_server(const Machine& machine, int devices) {
  return machine.peers ? std::min(devices, 1 + *machine.peers) : devices;
}

bool share_a_server(const Machine& machine, int devices) { return !machine.peers || devices <= 1 + *machine.peers; }

namespace {

// Round a ring through the servers, which it leaves once each.
[[nodiscard]] Seconds mean_hop(const Machine& machine, int devices) {
  const int server = 1 + *machine.peers;
  const double left = (devices + server - 1) / server;
  return (left * machine.network_latency.value_or(Seconds{}) +
          (devices - left) * machine.peer_latency.value_or(Seconds{})) /
         devices;
}

}  // namespace

std::optional<DeviceLink> link_among(const Machine& machine, int devices) {
  if (!share_a_server(machine, devices)) {
    if (!machine.network_link) return std::nullopt;
    return DeviceLink{*machine.network_link, *machine.network_link, mean_hop(machine, devices)};
  }
  if (!machine.peer_link) return std::nullopt;
  const double others = std::max(1, devices - 1);
  const BytesPerSecond peak =
      std::min(*machine.peer_link, others * machine.single_peer_link.value_or(*machine.peer_link));
  return DeviceLink{peak, machine.sustained.peer_link * peak, machine.peer_latency.value_or(Seconds{})};
}

std::vector<std::string> sharing_problems(const Machine& machine, const ModelShape& model, WeightFormat layers,
                                          int devices) {
  if (devices == 1) return {};
  if (machine.stack.split == Split::layers)
    return {"stack " + machine.stack.name + " gives each device whole layers (pipeline_parallel_size), no part of one"};
  std::vector<std::string> found = shard_problems(model, layers, devices);
  if (link_among(machine, devices)) return found;
  const char* link = share_a_server(machine, devices) ? "peer_link" : "network_link";
  found.insert(found.begin(), "machine " + machine.name + " has no " + link + " to exchange results over " +
                                  std::to_string(devices) + " devices");
  return found;
}

std::vector<std::string> token_exchange_problems(const Machine& machine, int devices) {
  std::vector<std::string> found;
  const std::string what = " to exchange tokens over " + std::to_string(devices) + " devices";
  if (devices_of_a_server(machine, devices) > 1 && !machine.peer_link)
    found.push_back("machine " + machine.name + " has no peer_link" + what);
  if (!share_a_server(machine, devices) && !machine.network_link)
    found.push_back("machine " + machine.name + " has no network_link" + what + ", of which a server has " +
                    std::to_string(1 + *machine.peers));
  return found;
}

}  // namespace dculab::sim
