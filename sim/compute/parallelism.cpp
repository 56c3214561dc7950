#include "sim/compute/parallelism.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::sim {
namespace {

// A kernel that hands out rows fills the slots.
[[nodiscard]] double workgroups(const lower::Grid& grid, double slots) {
  return grid.workgroups >= slots ? grid.workgroups : std::min(slots, grid.most_workgroups);
}

}  // namespace

double busy_simds(const Machine& machine, const Parallelism& parallel) {
  if (machine.kind == lower::DeviceKind::cpu) return 1;
  const double waves = parallel.concurrent * parallel.waves_per_workgroup / parallel.active_units;
  return std::min(1.0, waves / machine.waves.simds_per_unit);
}

// Workgroups of full rounds, and of a last one that may leave units idle, take turns.
double drawing_units(const Machine& machine, const Parallelism& parallel) {
  const double units = machine.compute_units;
  const double before = (parallel.rounds - 1) * units * parallel.workgroups_per_unit;
  const double drawn = units * parallel.workgroups / (before + std::max(parallel.workgroups - before, units));
  return std::min(drawn, parallel.concurrent);
}

Parallelism parallelism(const Machine& machine, const lower::Launch& launch, Team team) {
  Parallelism result;
  result.team = team;
  if (team == Team::caller) return result;
  result.workgroups_per_unit = launch.workgroups_per_unit;
  result.waves_per_workgroup = launch.waves_per_workgroup;
  const double units = machine.compute_units;
  const double slots = units * result.workgroups_per_unit;
  result.workgroups = std::max(1.0, workgroups(launch.grid, slots));
  result.rounds = std::ceil(result.workgroups / slots);
  result.concurrent = result.workgroups / result.rounds;
  result.active_units = result.workgroups / std::ceil(result.workgroups / units);
  if (launch.grid.longest_walk_tokens > 0) {
    const double balance = std::max(1.0, launch.grid.walked_tokens / launch.grid.longest_walk_tokens);
    result.concurrent = std::min(result.concurrent, balance);
    const double on_one = launch.grid.is_dealt ? std::ceil(balance / units) : 1;
    result.active_units = std::min(result.active_units, balance / on_one);
  }
  result.busy_simds = busy_simds(machine, result);
  return result;
}

}  // namespace dculab::sim
