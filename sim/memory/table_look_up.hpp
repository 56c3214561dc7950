// How long a kernel waits until the block table says where a context lies.
//
//   look-up = latency(first cache) + new lines * (latency(next) - latency(first)) + block_lookup     on a GPU
//   new lines = min(1, entries * 4 B / line)
//
// Entries of a sequence lie side by side: one look-up in line / 4 B / entries is the first to touch its line, which the
// next level then has. `block_lookup` is the arithmetic from the entry to the address. A CPU runs ahead of such loads:
// there the arithmetic alone counts.
#pragma once

#include "core/units.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Of as many entries at once.
[[nodiscard]] Seconds table_look_up(const Machine& machine, double entries);

}  // namespace dculab::sim
