#include "sim/memory/replay_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "lower/dculab_gpu/compiled_kernels.hpp"
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/dculab_gpu/streams.hpp"
#include "lower/lower.hpp"
#include "lower/occupancy.hpp"
#include "sim/memory/level_bytes.hpp"

namespace dculab::sim {
namespace {

using lower::dculab_gpu::find_compiled_kernel;

// None where the next level is asked for more than this one: for whole lines of which parts are wanted.
[[nodiscard]] double hit_rate(Bytes here, Bytes next) { return here > Bytes{} ? std::max(0.0, 1 - next / here) : 1; }

void add_launch(ReplayComparison& comparison, const CacheReplay& replay) {
  for (std::size_t level = 0; level < replay.levels.size(); ++level)
    comparison.levels[level].replayed += replay.levels[level].total().bytes;
}

// The launch that is priced, with as many workgroups on a unit and parts of a product as were recorded.
void follow_recording(lower::Launch& launch, const Op& op, const ReplayComparison& comparison) {
  if (launch.streams.count == 0) return;
  launch.workgroups_per_unit = comparison.workgroups_per_unit;
  if (op.kind != OpKind::matmul) return;
  const double whole = launch.streams.workgroups / std::max(1.0, launch.parts);
  const double parts = std::max(1.0, std::floor(comparison.workgroups / whole));
  launch.streams.workgroups = parts * whole;
  lower::dculab_gpu::add_sums(launch.streams, op, parts);
}

void add_closed_form(ReplayComparison& comparison, const Machine& machine, const Op& op, lower::Launch launch) {
  follow_recording(launch, op, comparison);
  const LevelBytes bytes =
      level_bytes(machine, op, launch, parallelism(machine, launch), launch.unique_bytes(), CacheStart::cold);
  for (std::size_t level = 0; level < machine.memory.size(); ++level)
    comparison.levels[level].closed_form = bytes.arriving[level];
}

void fill_hit_rates(std::vector<ComparedLevel>& levels) {
  for (std::size_t level = 0; level + 1 < levels.size(); ++level) {
    levels[level].replayed_hit_rate = hit_rate(levels[level].replayed, levels[level + 1].replayed);
    levels[level].closed_hit_rate = hit_rate(levels[level].closed_form, levels[level + 1].closed_form);
  }
  levels.back().replayed_hit_rate = levels.back().closed_hit_rate = 1;
}

// Each launch with its own registers and LDS: a combining or summing kernel is smaller than the one before.
[[nodiscard]] lower::KernelResources resources_of(const Machine& machine, const lower::Launch& priced,
                                                  const AddressTrace& launch) {
  return find_compiled_kernel(machine.kernel_target, launch.kernel).value_or(priced.resources);
}

}  // namespace

ReplayComparison compare_with_replay(const Machine& machine, const StepPlan& plan,
                                     std::span<const AddressTrace> launches, ReuseMeasurement reuse) {
  const Op& op = plan.ops.front();
  if (lower::dculab_gpu::calls_library(op, machine))
    throw InputError(std::string(op.name) + " is multiplied by the vendor's library on " + machine.name +
                     ", whose addresses are not known; replay another op, or other weights");
  const lower::Launch priced = lower::lower(op, plan, machine);  // by our kernels, which were recorded
  ReplayComparison comparison;
  comparison.op = op.name;
  comparison.kernel = launches.front().kernel;
  const bool is_compiled = find_compiled_kernel(machine.kernel_target, comparison.kernel).has_value();
  comparison.resources = is_compiled ? machine.kernel_target : "assumed";
  for (const MemoryLevel& level : machine.memory) comparison.levels.push_back({level.name, {}, {}, 0, 0});
  for (const AddressTrace& launch : launches) {
    const int per_unit = std::max(1, lower::workgroups_per_unit(machine.waves, resources_of(machine, priced, launch)));
    const CacheReplay replay = replay_cache(machine, launch, {.workgroups_per_unit = per_unit, .reuse = reuse});
    add_launch(comparison, replay);
    comparison.accesses += launch.accesses.size();
    if (&launch != &launches.front()) continue;
    comparison.workgroups = launch.workgroups;
    comparison.workgroups_per_unit = per_unit;
    comparison.coalescing = replay.loads.efficiency();
    comparison.lines_per_load = replay.loads.lines_per_instruction();
    comparison.reuse = replay.reuse;
  }
  add_closed_form(comparison, machine, op, priced);
  fill_hit_rates(comparison.levels);
  return comparison;
}

}  // namespace dculab::sim
