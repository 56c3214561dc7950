// What a collective of the devices that share the model takes:
//
//   time = min over the ways its kernels know of
//            start + hops * hop + sent / (link * share) + 2 * copied / DRAM
//
// `hop` and `link` are the machine's: peer_latency and the share of peer_link that messages sustain, or network_latency
// and network_link among more devices than a server has. `start` is its collective_start for a library's kernels, and a
// kernel launch for each of a program's own. Ways are lowered (lower/kernel_library.hpp).
#pragma once

#include "lower/launch.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct ExchangeTime {
  Seconds seconds;
  Seconds floor;    // what is sent at least, at the link's peak
  int kernels = 0;  // launched
};

// Precondition: link_among(machine, exchanges.devices).
[[nodiscard]] ExchangeTime exchange_time(const Machine& machine, const lower::Exchanges& exchanges);

}  // namespace dculab::sim
