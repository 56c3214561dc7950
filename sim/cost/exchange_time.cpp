#include "sim/cost/exchange_time.hpp"

#include <algorithm>
#include <limits>

#include "sim/hardware/device_link.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] Seconds time_of(const Machine& machine, const DeviceLink& link, const lower::Exchange& way) {
  const Seconds start = way.kernels > 0 ? way.kernels * machine.overheads.kernel_launch
                                        : machine.collective_start.value_or(way.default_start);
  const Seconds copying = 2.0 * way.copied / (machine.dram().bandwidth * machine.sustained.dram_bandwidth);
  return start + way.later_start + way.hops * (link.latency + way.later_hop) +
         way.sent / (link.bandwidth * way.link_share) + copying;
}

}  // namespace

ExchangeTime exchange_time(const Machine& machine, const lower::TokenTransfer& transfer) {
  const bool crosses = !share_a_server(machine, transfer.devices);
  const Seconds peer_hop = machine.peer_latency.value_or(Seconds{});
  const Seconds network_hop = crosses ? machine.network_latency.value_or(Seconds{}) : Seconds{};
  Seconds within, between, floor;
  if (transfer.within > Bytes()) {
    const DeviceLink link = *link_among(machine, devices_of_a_server(machine, transfer.devices));
    within = transfer.within / link.bandwidth;
    // Its own copies cross no link.
    floor = (1 - 1.0 / devices_of_a_server(machine, transfer.devices)) * transfer.within / link.peak;
  }
  if (transfer.between > Bytes()) {
    between = transfer.between / *machine.network_link;
    floor = std::max(floor, between);
  }
  const bool together = transfer.links == lower::LinkUse::together;
  const Seconds hop = together ? network_hop + peer_hop : std::max(network_hop, peer_hop);
  const Seconds start = transfer.kernels * machine.overheads.kernel_launch + transfer.passes * hop;
  return {start + (together ? std::max(within, between) : within + between), floor, transfer.kernels};
}

ExchangeTime exchange_time(const Machine& machine, const lower::Exchanges& exchanges) {
  const DeviceLink link = *link_among(machine, exchanges.devices);
  const Seconds none(std::numeric_limits<double>::infinity());
  ExchangeTime time{none, none, 0};
  for (const lower::Exchange& way : exchanges.ways()) {
    const Seconds seconds = time_of(machine, link, way);
    if (seconds < time.seconds) {
      time.seconds = seconds;
      time.kernels = std::max(1, way.kernels);
    }
    time.floor = std::min(time.floor, way.sent / link.peak);
  }
  return time;
}

}  // namespace dculab::sim
