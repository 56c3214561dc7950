// What a collective of the devices that share a model takes:
//
//   time = min over protocols of  start + hops * hop + sent / (link * share)
//
// `start`, `hop` and `link` are the machine's (collective_start; peer_latency and peer_link, or network_latency and
// network_link among more devices than a server has); hops, bytes sent and protocols are the library's
// (lower/kernel_library.hpp).
#pragma once

#include "lower/launch.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct ExchangeTime {
  Seconds seconds;
  Seconds floor;  // what it sends at the link's bandwidth
};

// Precondition: link_among(machine, exchange.devices).
[[nodiscard]] ExchangeTime exchange_time(const Machine& machine, const lower::Exchange& exchange);

}  // namespace dculab::sim
