// The cheapest of a product's splits along k (sim/compute/split_k.hpp), of which few are priced: a first guess, and
// those that a lower bound does not put above it.
//
//   a split takes at least  launches + workgroup starts + split-k reduction + (compute^4 + dram^4 + latency^4)^(1/4)
//
// for a norm falls with its power, and the smooth maximum's is 4 at most, or else with the largest of the three in
// place of the norm. Bytes are those of the finest split: its workgroups ask for least, and most rounds of them run.
// What a split keeps busy of the units sets its pace, up to that of all units. Holds for launches that ask for operands
// (no streams), on machines whose latencies rise from level to level.
#pragma once

#include "sim/compute/parallelism.hpp"
#include "sim/cost/way_price.hpp"

namespace dculab::sim {

// Precondition: can_be_split(machine, launch, whole), and the launch leaves open into how many parts.
[[nodiscard]] OpPrice price_cheapest_split(const Lowered& lowered, const Parallelism& whole);

}  // namespace dculab::sim
