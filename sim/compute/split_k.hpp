// A product on a GPU whose tiles are split along k, as GEMM libraries do where tiles are few.
//
// Into a whole number of parts, at most as many as lower/matmul.hpp says; tiles * parts workgroups run in whole rounds
// (parallelism.hpp). What adds the parts' sums: split_k_reduction_time in sim/cost/way_price.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "lower/launch.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

[[nodiscard]] Parallelism split_along_k(const Machine& machine, const Parallelism& whole, double parts);

// That `workgroups` workgroups keep busy, on average over their rounds.
[[nodiscard]] inline double units_of(const Machine& machine, double workgroups) {
  return workgroups / std::ceil(workgroups / machine.compute_units);
}

// Workgroups that run at a time.
[[nodiscard]] inline double places(const Machine& machine, const Parallelism& whole) {
  return static_cast<double>(machine.compute_units) * whole.workgroups_per_unit;
}

// Not where the kernel has no tiles to split, or as many as places.
[[nodiscard]] inline bool can_be_split(const Machine& machine, const lower::Launch& launch, const Parallelism& whole) {
  return launch.most_parts > 1 && whole.workgroups < places(machine, whole);
}

// Calls consider(parts, parallelism) with the numbers of parts, above one and rising, that may be the cheapest: those
// that keep more units busy than any smaller number, and the largest whose workgroups all run at once; up to `most`,
// and of those below `fewest` perhaps only some. `whole`: the parallelism unsplit, which can be split.
template <typename Consider>
void for_each_split(const Machine& machine, const Parallelism& whole, double fewest, double most, Consider&& consider) {
  const double fills = std::floor(places(machine, whole) / whole.workgroups);
  double parts = std::max(2.0, std::min(fewest, std::floor(machine.compute_units / whole.workgroups)));
  double busiest = units_of(machine, whole.workgroups * (parts - 1));
  for (; parts <= most; ++parts) {
    const double active = units_of(machine, whole.workgroups * parts);
    if (active > busiest || parts == fills) consider(parts, split_along_k(machine, whole, parts));
    busiest = std::max(busiest, active);
    if (busiest < machine.compute_units) continue;
    if (parts >= fills) return;  // nothing keeps more units busy
    parts = fills - 1;
  }
}

}  // namespace dculab::sim
