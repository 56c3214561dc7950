// The bytes that reach each memory level from a kernel whose streams are known (lower::Stream).
//
// Workgroups start in the order of their numbers, one per unit in turn. Of those that ask for the same byte
//   co-residents   run on one unit at a time, and find it in that unit's cache: they are no farther apart than
//   `between` later ones     come to a unit that has had it before: distance = what its workgroups ask for elsewhere
//   ask a cache that all share: `together` and `temporal` of hit_rate.hpp
// A workgroup that asks again, or for the rest of a line, does so after `between` bytes of its own and as many of each
// co-resident. A cache of a GPU's unit takes no stores; a shared one keeps which bytes were stored.
#pragma once

#include "lower/launch.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/level_bytes.hpp"

namespace dculab::sim {

// Precondition: `launch` has streams, and the machine is a GPU. `footprint`: distinct weight and KV bytes of the step.
[[nodiscard]] LevelBytes stream_bytes(const Machine& machine, const Op& op, const lower::Launch& launch,
                                      Bytes footprint, CacheStart start);

}  // namespace dculab::sim
