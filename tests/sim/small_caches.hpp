// GPUs with caches small enough to work out by hand, and what a replay on them asks of a level.
#pragma once

#include "sim/memory/cache_replay.hpp"
#include "tests/sim/address_traces.hpp"
#include "tests/sim/machines.hpp"

namespace dculab::sim::test {

inline constexpr int kFully = 1 << 20;  // ways: more than lines

struct Geometry {
  double bytes = 0;
  int ways = kFully;
};

// Lines of 64 bytes at every level.
inline Machine gpu(int units, Geometry l1, Geometry l2) {
  Machine machine = mi50_like();
  machine.compute_units = units;
  machine.memory[0].size = Bytes(l1.bytes);
  machine.memory[0].ways = l1.ways;
  machine.memory[1].size = Bytes(l2.bytes);
  machine.memory[1].ways = l2.ways;
  return machine;
}

inline Machine roomy_gpu(int units) { return gpu(units, {16384, 4}, {1 << 22, 16}); }

inline CacheReplay replay(const Machine& machine, const TraceBuilder& trace, ReplayOptions options = {}) {
  return replay_cache(machine, trace.build(), options);
}

inline LineRequests loads(const CacheReplay& result, std::size_t level) {
  return result.levels.at(level).of(AccessKind::load);
}
inline LineRequests stores(const CacheReplay& result, std::size_t level) {
  return result.levels.at(level).of(AccessKind::store);
}

}  // namespace dculab::sim::test
