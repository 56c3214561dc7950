// What devices that share a model exchange.
//
// A collective takes:
//
//   time = min over the ways its kernels know of
//            start + hops * hop + sent / (link * share) + 2 * copied / DRAM
//
// `hop` and `link` are the machine's: peer_latency and the share of peer_link that messages sustain, or network_latency
// and network_link among more devices than a server has. `start` is its collective_start for a library's kernels, and a
// kernel launch for each of a program's own. Ways are lowered (lower/kernel_library.hpp).
//
// A dispatch or combine of tokens (lower/deep_ep) takes, on the device that moves the most:
//
//   time = kernels * kernel launch + passes * hop + link time
//   link time = max or sum of
//                 bytes within the server / (peer_link * sustained.peer_link)
//                 bytes between servers / network_link
//
// `hop` is network_latency where there are more devices than a server has, and peer_latency otherwise; kernels that
// forward from one link to the other wait for both.
#pragma once

#include "lower/launch.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct ExchangeTime {
  Seconds seconds;
  Seconds floor;    // what is sent at least, at the link's peak
  int kernels = 0;  // launched
};

// Precondition: token_exchange_problems(machine, transfer.devices) is empty.
[[nodiscard]] ExchangeTime exchange_time(const Machine& machine, const lower::TokenTransfer& transfer);

// Precondition: link_among(machine, exchanges.devices).
[[nodiscard]] ExchangeTime exchange_time(const Machine& machine, const lower::Exchanges& exchanges);

}  // namespace dculab::sim
