// A product on a GPU whose tiles are split along k, as GEMM libraries do where tiles are few.
//
// Into a whole number of parts, at most as many as lower/matmul.hpp says; tiles * parts workgroups run in whole rounds
// (parallelism.hpp). A second kernel adds the parts' F32 sums:
//
//   adding = 2 * parts * m * n * 4 bytes / what the last cache delivers, and DRAM where that does not hold them
//
// Once to write them and once to read them. Splits fill the machine about once, so all parts end and write together:
// there is no arithmetic left to hide it behind, as there is for a matmul's other cache traffic (step_price.hpp).
#pragma once

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "lower/launch.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

[[nodiscard]] Parallelism split_along_k(const Machine& machine, const Parallelism& whole, double parts);

// To write the parts' sums, and of the second kernel to read them; none for one part.
[[nodiscard]] Seconds adding_time(const Machine& machine, const lower::Launch& launch, double parts);

// Calls consider(parts, parallelism) with the numbers of parts, above one and rising, that may be the cheapest: those
// that keep more units busy than any smaller number, and the largest whose workgroups all run at once. `whole`: the
// parallelism unsplit. Never where the kernel has no tiles to split, or as many as places.
template <typename Consider>
void for_each_split(const Machine& machine, const lower::Launch& launch, const Parallelism& whole,
                    Consider&& consider) {
  const double places = static_cast<double>(machine.compute_units) * whole.workgroups_per_unit;
  if (launch.most_parts <= 1 || whole.workgroups >= places) return;
  const double fills = std::floor(places / whole.workgroups);
  double busiest = whole.active_units;
  for (double parts = 2; parts <= launch.most_parts; ++parts) {
    const Parallelism split = split_along_k(machine, whole, parts);
    if (split.active_units > busiest || parts == fills) consider(parts, split);
    busiest = std::max(busiest, split.active_units);
  }
}

}  // namespace dculab::sim
