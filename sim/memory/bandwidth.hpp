// What each memory level delivers to an op: Little's law.
//
//   T(l)         = mean latency of the requests that reach level l: they end there or further down. Where a level asks
//                  the next for more than it is asked for, in longer lines or for one line again and again, all go on
//   latency(l)   = of level l itself. Prefetchers start the reads of deeper levels early, so those do not hold up what
//                  level l serves; the deeper level has lines in flight of its own.
//   bandwidth(l) = smallest of
//                    peak * efficiency
//                    active units * one unit's bandwidth * efficiency
//                    active units * outstanding lines * line / latency(l)
//                    bytes in flight / T(l)                                  GPU: loads of the waves in flight
//   A library's product by tiles fetches slabs of k, some of them ahead of the one that it multiplies. A slab waits for
//   memory, is transferred at the unit's rate, and goes through the scratchpad: written once, and read in steps that
//   the instructions on each wait for.
//     latency time = tiles * slabs / concurrent workgroups
//                    * ((T(0) + slab / L1 of a unit) / slabs ahead + (1 + steps) * latency of the scratchpad)
//   bytes in flight = concurrent workgroups * waves * min(lanes * 16 B * 4 loads, 2 * found at once)
//
// Of a level that all units share, our own attention has the drawing units in the place of active ones in the second
// line (parallelism.hpp).
//
// One unit's bandwidth, where its file does not say it, is its share; of a design with more units than the machine that
// it was made of, the share that a unit has there (sharing_units). DRAM is not shared out: to a GPU's product, whose
// slabs are fetched ahead, and to attention whose waits are priced otherwise, a unit that works can draw for idle ones
// what the last cache gives a unit, unless the file says what a unit draws alone; but it has no more lines outstanding
// than its own.
//
// What a wave finds at once it can ask for ahead of time, K and V: a KV block where the kernel follows the block table
// block by block, else its share of the tokens that the workgroup looks up together. Sources: Little 1961; Volkov 2010,
// "Better performance at lower occupancy" (16-byte loads, a few per lane, suffice to fill a GPU's memory pipe).
#pragma once

#include <array>

#include "core/op.hpp"
#include "core/units.hpp"
#include "lower/launch.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

template <typename T>
using PerLevel = std::array<T, kMaxMemoryLevels>;  // [machine.memory.size()] used, fastest first

// Bytes that the waves in flight have asked for at any time; unlimited where hardware prefetches and `outstanding` says
// it.
[[nodiscard]] Bytes bytes_in_flight(const Machine& machine, const lower::Launch& launch, const Parallelism& parallel);

// What the loads of an op wait for one another: of `read` bytes asked for, at the mean latency of each.
[[nodiscard]] Seconds latency_time(const Machine& machine, const lower::Launch& launch, const Parallelism& parallel,
                                   Bytes read, Seconds latency);

// Of a step in the scratchpad of a unit, which the next one waits for.
[[nodiscard]] Seconds scratchpad_latency(const Machine& machine);

// T(l) for every level, from the bytes that arrive at each. T(0) is the effective latency of the op.
[[nodiscard]] PerLevel<Seconds> mean_latencies(const Machine& machine, const PerLevel<Bytes>& arriving);

// Units whose share of level `index` the kernel has.
[[nodiscard]] double drawing_units(const Machine& machine, const lower::Launch& launch, std::size_t index,
                                   const Parallelism& parallel);

// The first three terms: what level `index` can deliver to `active_units` units, which have the share of
// `drawing_units`.
[[nodiscard]] BytesPerSecond deliverable(const Machine& machine, std::size_t index, double active_units,
                                         double drawing_units);
[[nodiscard]] BytesPerSecond deliverable(const Machine& machine, std::size_t index, double active_units);

}  // namespace dculab::sim
