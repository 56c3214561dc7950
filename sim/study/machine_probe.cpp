#include "sim/study/machine_probe.hpp"

#include <algorithm>

#include "sim/compute/peak.hpp"
#include "sim/hardware/device_link.hpp"
#include "sim/memory/bandwidth.hpp"
#include "sim/memory/hit_rate.hpp"

namespace dculab::sim {
namespace {

constexpr Bytes kValue{8};  // of a benchmark's loads, F64

// Of the probe's bytes, touched again and again, what reaches each level.
[[nodiscard]] PerLevel<Bytes> arriving_again(const Machine& machine, const MachineProbe& probe) {
  PerLevel<Bytes> arriving{};
  Bytes here = probe.bytes;
  for (std::size_t index = 0; index < machine.memory.size(); ++index) {
    const MemoryLevel& level = machine.memory[index];
    arriving[index] = here;
    const bool passes = probe.kind == ProbeKind::copy && level.scope == Scope::compute_unit;
    if (!passes) here *= 1 - hit_probability(probe.bytes, level.size);
  }
  return arriving;
}

struct Slowest {
  Seconds time;
  std::string level;
};

[[nodiscard]] Slowest slowest_level(const Machine& machine, const MachineProbe& probe) {
  const PerLevel<Bytes> arriving = arriving_again(machine, probe);
  Slowest slowest;
  for (std::size_t index = 0; index < machine.memory.size(); ++index) {
    BytesPerSecond rate = deliverable(machine, index, machine.compute_units);
    if (probe.threads && index + 1 == machine.memory.size())
      rate = std::min(rate, machine.compute_units * *probe.threads * kValue / machine.dram().latency);
    if (const Seconds time = arriving[index] / rate; time > slowest.time) slowest = {time, machine.memory[index].name};
  }
  return slowest;
}

// At peak bandwidths, of what cannot be in the levels above.
[[nodiscard]] Seconds streaming_floor(const Machine& machine, Bytes beyond) {
  Seconds floor;
  for (const MemoryLevel& level : machine.memory) {
    floor = std::max(floor, std::max(beyond, Bytes(0)) / level.bandwidth);
    beyond -= level.size * (level.scope == Scope::compute_unit ? machine.compute_units : 1);
  }
  return floor;
}

[[nodiscard]] Seconds arithmetic_time(const Machine& machine, Dtype dtype) {
  return FlopCount(1) / highest_rate(multiply_format(machine, dtype).peak);
}

[[nodiscard]] Seconds sending_time(const Machine& machine, const MachineProbe& probe) {
  const DeviceLink link = *link_among(machine, probe.devices);
  return machine.collective_start.value_or(machine.overheads.kernel_launch) + link.latency +
         probe.bytes / link.bandwidth;
}

}  // namespace

Seconds probe_time(const Machine& machine, const MachineProbe& probe) {
  switch (probe.kind) {
    case ProbeKind::copy:
      return machine.overheads.kernel_launch + slowest_level(machine, probe).time;
    case ProbeKind::cache_read:
      return slowest_level(machine, probe).time;
    case ProbeKind::cache_chase:
      return mean_latencies(machine, arriving_again(machine, probe))[0];
    case ProbeKind::send:
      return sending_time(machine, probe);
    case ProbeKind::arithmetic:
      break;
  }
  return arithmetic_time(machine, probe.dtype);
}

Seconds probe_floor(const Machine& machine, const MachineProbe& probe) {
  switch (probe.kind) {
    case ProbeKind::copy:
      return streaming_floor(machine, probe.bytes);
    case ProbeKind::cache_read:
      return probe.bytes / machine.memory.front().bandwidth;
    case ProbeKind::cache_chase:
      return {};  // a latency is no peak
    case ProbeKind::send:
      return probe.bytes / link_among(machine, probe.devices)->peak;
    case ProbeKind::arithmetic:
      break;
  }
  return arithmetic_time(machine, probe.dtype);
}

std::string probe_bound(const Machine& machine, const MachineProbe& probe) {
  switch (probe.kind) {
    case ProbeKind::cache_chase:
      return "latency";
    case ProbeKind::send:
      return "exchange";
    case ProbeKind::arithmetic:
      return "compute";
    case ProbeKind::copy:
    case ProbeKind::cache_read:
      break;
  }
  const Slowest slowest = slowest_level(machine, probe);
  const bool launch = probe.kind == ProbeKind::copy && slowest.time <= machine.overheads.kernel_launch;
  return launch ? "launch" : slowest.level;
}

}  // namespace dculab::sim
