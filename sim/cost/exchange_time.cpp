#include "sim/cost/exchange_time.hpp"

#include <algorithm>
#include <limits>

#include "sim/hardware/device_link.hpp"

namespace dculab::sim {
namespace {

constexpr Seconds kNcclStart(6.6e-6);  // NVIDIA/nccl@5067397, src/graph/tuning.cc: a ring's LL

[[nodiscard]] Seconds time_of(const Machine& machine, const DeviceLink& link, const lower::Exchange& way) {
  const Seconds start =
      way.kernels > 0 ? way.kernels * machine.overheads.kernel_launch : machine.collective_start.value_or(kNcclStart);
  const Seconds copying = 2.0 * way.copied / (machine.dram().bandwidth * machine.sustained.dram_bandwidth);
  return start + way.later_start + way.hops * (link.latency + way.later_hop) +
         way.sent / (link.bandwidth * way.link_share) + copying;
}

}  // namespace

ExchangeTime exchange_time(const Machine& machine, const lower::Exchanges& exchanges) {
  const DeviceLink link = *link_among(machine, exchanges.devices);
  const Seconds none(std::numeric_limits<double>::infinity());
  ExchangeTime time{none, none};
  for (const lower::Exchange& way : exchanges.ways()) {
    time.seconds = std::min(time.seconds, time_of(machine, link, way));
    time.floor = std::min(time.floor, way.sent / link.peak);
  }
  return time;
}

}  // namespace dculab::sim
