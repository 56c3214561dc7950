#include "sim/cost/way_price.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "sim/compute/compute_time.hpp"
#include "sim/compute/matmul_rate.hpp"
#include "sim/compute/split_k.hpp"
#include "sim/cost/smooth_max.hpp"
#include "sim/memory/level_bytes.hpp"
#include "sim/memory/table_look_up.hpp"

namespace dculab::sim {
namespace {

using lower::Launch;
using lower::Overlap;

// Fills in bytes, hit rates, bandwidths, T_eff and floor; returns each level's time.
[[nodiscard]] PerLevel<Seconds> price_memory(OpPrice& price, const Lowered& lowered) {
  const auto& [machine, op, launch, footprint, norm, launches_per_kernel] = lowered;
  const LevelBytes bytes = level_bytes(machine, op, launch, price.parallel, footprint, CacheStart::in_step);
  const PerLevel<Seconds> latencies = mean_latencies(machine, bytes.arriving);
  const Bytes in_flight = bytes_in_flight(machine, launch, price.parallel);
  const std::size_t levels = machine.memory.size();
  PerLevel<Seconds> times{};
  price.bytes = bytes.arriving;
  price.effective_latency = latencies[0];
  price.latency = latency_time(machine, launch, price.parallel, bytes.read, latencies[0]);
  for (std::size_t level = 0; level < levels; ++level) {
    const Bytes here = bytes.arriving[level];
    const bool last = level + 1 == levels;
    price.hit_rate[level] = last || here <= Bytes{} ? 1 : std::max(0.0, 1 - bytes.arriving[level + 1] / here);
    const BytesPerSecond deliverable_here = delivered(lowered, price.parallel, level);
    price.bandwidth[level] = std::min(deliverable_here, in_flight / latencies[level]);
    times[level] = here / deliverable_here;
    price.floor = std::max(price.floor, here / machine.memory[level].bandwidth);
  }
  return times;
}

// A second kernel adds up what the parts of a product split along k come to, if they do not themselves.
void price_starts(OpPrice& price, const Lowered& lowered, double parts) {
  const auto& [machine, op, launch, footprint, norm, launches_per_kernel] = lowered;
  price.lookups = launch.waits_for_table * table_look_up(machine, launch.entries_at_once) / price.parallel.concurrent;
  price.chain = (launch.chained_loads + price.parallel.rounds * launch.loads_before) *
                machine.memory[machine.memory.size() > 1 ? machine.memory.size() - 2 : 0].latency;
  if (launch.chained_steps > 0) price.chain += launch.chained_steps * scratchpad_latency(machine);
  const int kernels =
      price.parallel.team == Team::caller ? 0 : launch.kernels + (parts > 1 && !launch.adds_in_place ? 1 : 0);
  const double starts = kernels == 0 ? 0 : price.parallel.rounds;
  price.kernels = kernels * launches_per_kernel;
  price.launch = price.kernels * machine.overheads.kernel_launch + starts * machine.overheads.workgroup_start;
}

// Attention of fewer workgroups than units, in one round, that draw less than a shared level delivers: more bytes, of
// more of them, take no longer.
[[nodiscard]] bool waits_for_loads(const OpPrice& price, const Machine& machine, const Launch& launch,
                                   std::size_t level) {
  const Parallelism& parallel = price.parallel;
  return machine.kind == lower::DeviceKind::gpu && launch.arithmetic.pipe == lower::Pipe::attention &&
         machine.memory[level].scope == Scope::device && parallel.rounds == 1 &&
         parallel.concurrent < machine.compute_units &&
         drawing_units(machine, launch, level, parallel) < machine.compute_units;
}

[[nodiscard]] Bound bound_of(const OpPrice& price, const Machine& machine, const Launch& launch,
                             const PerLevel<Seconds>& levels) {
  const auto slowest = static_cast<std::size_t>(std::max_element(levels.begin(), levels.end()) - levels.begin());
  Bound bound{BoundKind::memory, slowest};
  if (waits_for_loads(price, machine, launch, slowest)) bound.kind = BoundKind::latency;
  Seconds largest = levels[slowest];
  const auto consider = [&](BoundKind kind, Seconds time) {
    if (time <= largest) return;
    largest = time;
    bound = {kind, 0};
  };
  if (price.split_k_reduction > largest) {
    largest = price.split_k_reduction;
    bound.kind = BoundKind::memory;
    bound.level = std::max<std::size_t>(machine.memory.size(), 2) - 2;  // the last cache
  }
  consider(BoundKind::compute, price.compute);
  consider(BoundKind::latency, std::max({price.latency, price.lookups, price.chain}));
  consider(BoundKind::launch, price.launch);
  return bound;
}

// Levels hand on to each other what a workgroup, or a wave, then waits for and works on: with one
// on a unit, or on a SIMD, the three add up; with many, they hide each other as far as the stack's kernels reach.
[[nodiscard]] Seconds beside_neighbours(const Resources& resources, const Parallelism& parallel, double on_each,
                                        double overlap, double norm) {
  const double neighbours = std::max(1.0, parallel.concurrent / parallel.active_units * on_each);
  const std::span all(resources);
  const std::array<Seconds, 3> parts{smooth_max(all.first<kMaxMemoryLevels>(), norm), all[kMaxMemoryLevels],
                                     all[kMaxMemoryLevels + 1]};
  return smooth_max(std::span(parts), norm_of_overlap(overlap * (1 - 1 / neighbours)));
}

[[nodiscard]] std::size_t hidden_levels(const Machine& machine, Overlap overlap) {
  if (overlap == Overlap::caches) return machine.memory.size() - 1;
  return overlap == Overlap::all ? machine.memory.size() : 0;
}

[[nodiscard]] Bytes weight_bytes(const Op& op) {
  Bytes total;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::weight) total += operand.unique;
  return total;
}

// Weights from DRAM at the rate at which the kernel gets through them there.
[[nodiscard]] Seconds streaming_weights(const OpPrice& price, const Machine& machine, const Launch& launch,
                                        Bytes weights, double share) {
  const std::size_t dram = machine.memory.size() - 1;
  const double active =
      deliverable(machine, dram, price.parallel.active_units, drawing_units(machine, launch, dram, price.parallel)) /
      deliverable(machine, dram, machine.compute_units);
  return weights / (share * active * machine.dram().bandwidth);
}

}  // namespace

BytesPerSecond delivered(const Lowered& lowered, const Parallelism& parallel, std::size_t level) {
  return deliverable(lowered.machine, level, parallel.active_units,
                     drawing_units(lowered.machine, lowered.launch, level, parallel));
}

Resources resources_of(const Lowered& lowered, const OpPrice& price, const PerLevel<Seconds>& levels) {
  const auto& [machine, op, launch, footprint, norm, launches_per_kernel] = lowered;
  Resources resources{};
  std::copy(levels.begin(), levels.end(), resources.begin());
  Seconds& compute = resources[kMaxMemoryLevels];
  compute = price.compute;
  resources[kMaxMemoryLevels + 1] = price.latency;
  for (std::size_t level = 0; level < hidden_levels(machine, launch.overlap); ++level)
    compute = std::max(compute, std::exchange(resources[level], Seconds{}));
  if (const auto share = launch.product ? matmul_dram_share(machine, *launch.product) : std::nullopt) {
    const std::size_t dram = machine.memory.size() - 1;
    const Bytes arriving = price.bytes[dram], weights = std::min(arriving, weight_bytes(op));
    compute = std::max(compute, streaming_weights(price, machine, launch, weights, *share));
    if (arriving > weights)
      resources[dram] *= (arriving - weights) / arriving;
    else
      resources[dram] = Seconds{};
  }
  return resources;
}

Seconds split_k_reduction_time(const Machine& machine, const lower::Launch& launch, double parts) {
  if (parts <= 1) return {};
  const std::size_t dram = machine.memory.size() - 1;
  const Bytes sums = storage(Dtype::f32, parts * launch.sums);
  const auto moved = [&](std::size_t level) { return 2.0 * sums / deliverable(machine, level, machine.compute_units); };
  if (dram == 0) return moved(dram);
  return launch.adds_in_place || sums <= machine.memory[dram - 1].size ? moved(dram - 1)
                                                                       : std::max(moved(dram - 1), moved(dram));
}

OpPrice price_way(const Lowered& lowered, const Way& way) {
  const auto& [machine, op, launch, footprint, norm, launches_per_kernel] = lowered;
  OpPrice price;
  price.count = op.count;
  price.parallel = way.parallel;
  const ComputeTime compute = compute_time(machine, op, launch, price.parallel);
  price.compute = compute.busy;
  price.floor = compute.floor;
  const PerLevel<Seconds> levels = price_memory(price, lowered);
  price.memory = *std::max_element(levels.begin(), levels.end());
  price_starts(price, lowered, way.parts);
  price.split_k_reduction = split_k_reduction_time(machine, launch, way.parts);
  Resources resources = resources_of(lowered, price, levels);
  if (launch.overlap == Overlap::dram_in_turn) price.in_turn = std::exchange(resources[machine.memory.size() - 1], {});
  const bool by_waves = launch.overlap == Overlap::waves;
  const double on_each = by_waves ? price.parallel.waves_per_workgroup / machine.waves.simds_per_unit : 1;
  const Reached& reached = machine.stack.reached;
  const double overlap = op.kind == OpKind::matmul ? reached.matmul_overlap : reached.overlap;
  const Seconds busy = by_waves || launch.overlap == Overlap::neighbours
                           ? beside_neighbours(resources, price.parallel, on_each, overlap, norm)
                           : smooth_max(std::span(std::as_const(resources)), norm);
  price.seconds = price.launch + price.lookups + price.chain + price.split_k_reduction + price.in_turn + busy;
  price.bound = bound_of(price, machine, launch, levels);
  return price;
}

}  // namespace dculab::sim
