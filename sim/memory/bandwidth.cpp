#include "sim/memory/bandwidth.hpp"

#include <algorithm>
#include <limits>

#include "sim/hardware/design.hpp"

namespace dculab::sim {
namespace {

constexpr Bytes kLoad{16};           // the widest load of a lane
constexpr double kLoadsAhead = 4;    // per lane, before it waits
constexpr double kScratchpad = 0.5;  // of the L1's latency: 64 cycles of 125 on gfx90a
constexpr double kRunsAhead = 2;     // per wave: of K and of V

}  // namespace

Bytes bytes_in_flight(const Machine& machine, const lower::Launch& launch, const Parallelism& parallel) {
  if (!launch.waits_for_loads) return Bytes(std::numeric_limits<double>::infinity());
  Bytes per_wave = machine.waves.wave_size * kLoadsAhead * kLoad;
  for (const lower::Access& access : launch.accesses())
    if (access.role == OperandRole::kv_read) per_wave = std::min(per_wave, kRunsAhead * access.found_at_once);
  return parallel.concurrent * parallel.waves_per_workgroup * per_wave;
}

Seconds latency_time(const Machine& machine, const lower::Launch& launch, const Parallelism& parallel, Bytes read,
                     Seconds latency) {
  if (launch.slabs == 0) return read * latency / bytes_in_flight(machine, launch, parallel);
  const MemoryLevel& first = machine.memory.front();
  const Seconds fetching = latency + launch.slab / (first.bandwidth / machine.compute_units);
  const Seconds scratchpad = (1 + launch.slab_steps) * scratchpad_latency(machine);
  const double one_by_one = launch.grid.workgroups * launch.slabs / parallel.concurrent;
  return one_by_one * (fetching / launch.slabs_ahead + scratchpad);
}

Seconds scratchpad_latency(const Machine& machine) { return kScratchpad * machine.memory.front().latency; }

PerLevel<Seconds> mean_latencies(const Machine& machine, const PerLevel<Bytes>& arriving) {
  PerLevel<Bytes> going_on = arriving;  // no more of what is asked for than at the level above
  for (std::size_t index = 1; index < machine.memory.size(); ++index)
    going_on[index] = std::min(going_on[index], going_on[index - 1]);
  PerLevel<Seconds> result{};
  Seconds below;
  for (std::size_t index = machine.memory.size(); index-- > 0;) {
    const bool last = index + 1 == machine.memory.size();
    const double misses = last || going_on[index] <= Bytes{} ? 0 : going_on[index + 1] / going_on[index];
    below = (1 - misses) * machine.memory[index].latency + misses * below;
    result[index] = below;
  }
  return result;
}

double drawing_units(const Machine& machine, const lower::Launch& launch, std::size_t index,
                     const Parallelism& parallel) {
  if (machine.memory[index].scope == Scope::compute_unit) return parallel.active_units;
  const bool dram = index + 1 == machine.memory.size();
  const double drawing = launch.draws_alike ? drawing_units(machine, parallel) : parallel.active_units;
  if (!launch.draws_for_idle || !dram || index == 0) return drawing;
  if (machine.dram().bandwidth_per_unit > BytesPerSecond{}) return drawing;
  const double shares = std::max(1.0, machine.memory[index - 1].bandwidth / machine.dram().bandwidth);
  return std::min<double>(machine.compute_units, std::max(drawing, parallel.active_units * shares));
}

BytesPerSecond deliverable(const Machine& machine, std::size_t index, double active_units) {
  return deliverable(machine, index, active_units, active_units);
}

BytesPerSecond deliverable(const Machine& machine, std::size_t index, double active_units, double drawing_units) {
  const MemoryLevel& level = machine.memory[index];
  const bool dram = index + 1 == machine.memory.size();
  const double efficiency = dram ? machine.sustained.dram_bandwidth
                                 : machine.sustained.cache_bandwidth * machine.stack.reached.cache_bandwidth;
  const bool alone_known = level.bandwidth_per_unit > BytesPerSecond{};
  const int sharers = level.scope == Scope::compute_unit ? machine.compute_units : sharing_units(machine);
  const BytesPerSecond per_unit = alone_known ? level.bandwidth_per_unit : level.bandwidth / sharers;
  BytesPerSecond result = efficiency * std::min(level.bandwidth, drawing_units * per_unit);
  if (level.outstanding > 0) result = std::min(result, active_units * level.outstanding * level.line / level.latency);
  return result;
}

}  // namespace dculab::sim
