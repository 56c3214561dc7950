#include "sim/compute/split_k.hpp"

#include <algorithm>
#include <cmath>

#include "sim/memory/bandwidth.hpp"

namespace dculab::sim {

Parallelism split_along_k(const Machine& machine, const Parallelism& whole, double parts) {
  Parallelism result = whole;
  result.workgroups = whole.workgroups * parts;
  result.rounds = std::ceil(result.workgroups / places(machine, whole));
  result.concurrent = result.workgroups / result.rounds;
  result.active_units = units_of(machine, result.workgroups);
  result.busy_simds = busy_simds(machine, result);
  return result;
}

Seconds adding_time(const Machine& machine, const lower::Launch& launch, double parts) {
  if (parts <= 1) return {};
  const std::size_t dram = machine.memory.size() - 1;
  const Bytes sums = storage(Dtype::f32, parts * launch.sums);
  const auto moved = [&](std::size_t level) { return 2.0 * sums / deliverable(machine, level, machine.compute_units); };
  if (dram == 0) return moved(dram);
  return launch.adds_in_place || sums <= machine.memory[dram - 1].size ? moved(dram - 1)
                                                                       : std::max(moved(dram - 1), moved(dram));
}

}  // namespace dculab::sim
