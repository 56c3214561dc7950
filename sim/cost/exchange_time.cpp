#include "sim/cost/exchange_time.hpp"

#include <algorithm>
#include <limits>

#include "sim/hardware/device_link.hpp"

namespace dculab::sim {
namespace {

constexpr Seconds kNcclStart(3.6e-6);

}  // namespace

ExchangeTime exchange_time(const Machine& machine, const lower::Exchange& exchange) {
  const DeviceLink link = *link_among(machine, exchange.devices);
  ExchangeTime time{Seconds(std::numeric_limits<double>::infinity()), exchange.sent / link.bandwidth};
  for (const lower::Protocol& protocol : exchange.protocols)
    time.seconds = std::min(time.seconds, machine.collective_start.value_or(kNcclStart) + protocol.later_start +
                                              exchange.hops * (link.latency + protocol.later_hop) +
                                              exchange.sent / (link.bandwidth * protocol.link_share));
  return time;
}

}  // namespace dculab::sim
