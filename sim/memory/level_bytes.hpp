// The bytes that reach each memory level: what the workgroups ask for, less what the caches above answer.
//
//   bytes(operand, 0)     = unique * requests * line rounding
//   bytes(operand, l + 1) = what reuse.hpp and hit_rate.hpp leave of them, in lines of level l (of DRAM, if longer)
//
// Where two scattered runs share a line, the second finds it in a shared cache with the probability hit_probability(d,
// cache). The run after a KV head's is the next head's of the same block, whose workgroup walks in step: d = together
// (hit_rate.hpp). After the last head comes whichever block lies there: d = unique, the operand's other runs.
//
// Values for which a kernel has no registers (Launch::spills) come on top: from the L1 on, what a cache has lost since
// their last visit, hit_probability(workgroups that share it * between, cache).
//
// Held against the replay of the kernels' own addresses: docs/reference/cache-replay.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/op.hpp"
#include "core/units.hpp"
#include "lower/launch.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/bandwidth.hpp"

namespace dculab::sim {

// What the caches hold when the op begins.
enum class CacheStart : std::uint8_t {
  in_step,  // what the ops before have left; results stay for the ops after
  cold,     // nothing, and results are written back: an op recorded or benchmarked alone
};

struct LevelBytes {
  PerLevel<Bytes> arriving{};
  Bytes read;  // asked of the fastest level
};

// The reuse distance where caches start cold: more bytes than any cache holds.
inline constexpr Bytes kColdDistance{1e30};

// In which pieces bytes arrive at a level: the lines of the one above, which DRAM makes whole accesses of its own.
[[nodiscard]] inline Bytes arriving_line(const Machine& machine, std::size_t level) {
  const Bytes own = machine.memory[level].line;
  if (level == 0) return own;
  const Bytes above = machine.memory[level - 1].line;
  return level + 1 == machine.memory.size() ? std::max(own, above) : above;
}

// `footprint`: distinct weight and KV bytes of the whole step.
[[nodiscard]] LevelBytes level_bytes(const Machine& machine, const Op& op, const lower::Launch& launch,
                                     const Parallelism& parallel, Bytes footprint, CacheStart start);

}  // namespace dculab::sim
