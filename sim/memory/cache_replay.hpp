// What a recorded kernel launch asks of every memory level of a machine, which share the caches answer, and what is
// left for DRAM: the trace replayed, its workgroups interleaved as the machine would run them.
//
// This is the check on the closed forms of hit_rate.hpp: no law, only counting. docs/reference/cache-replay.md says
// what is replayed and what is not.
#pragma once

#include <optional>
#include <vector>

#include "core/address_trace.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/cache_hierarchy.hpp"
#include "sim/memory/reuse_distance.hpp"

namespace dculab::sim {

enum class ReuseMeasurement : std::uint8_t { off, on };

struct ReplayOptions {
  int workgroups_per_unit = 1;                     // see lower/occupancy.hpp
  SetIndex private_index = SetIndex::modulo;       // caches of one compute unit
  SetIndex shared_index = SetIndex::hashed;        // caches that all share
  ReuseMeasurement reuse = ReuseMeasurement::off;  // several times slower
};

// How well the lanes of a wave lie together, loads or stores.
struct Coalescing {
  std::uint64_t instructions = 0;
  std::uint64_t lines = 0;  // of the first level, each once per instruction
  Bytes asked_by_lanes;
  Bytes moved;  // lines * line

  // Above 1 where lanes ask for the same bytes.
  [[nodiscard]] double efficiency() const { return lines == 0 ? 0 : asked_by_lanes / moved; }
  [[nodiscard]] double lines_per_instruction() const {
    return instructions == 0 ? 0 : static_cast<double>(lines) / static_cast<double>(instructions);
  }
};

struct CacheReplay {
  std::vector<ReplayedLevel> levels;  // as Machine::memory: fastest first, DRAM last
  Coalescing loads;
  Coalescing stores;
  std::optional<ReuseHistogram> reuse;  // of the accesses as made, before any cache, in lines of the shared cache

  [[nodiscard]] Bytes read_from_dram() const { return levels.back().of(AccessKind::load).bytes; }
  [[nodiscard]] Bytes written_to_dram() const { return levels.back().of(AccessKind::store).bytes; }
};

// Cold caches; what is dirty in the end is written back. Precondition: the machine has no problems(). Throws
// std::invalid_argument when the trace has some, when no workgroup fits or when a line is not a power of two.
[[nodiscard]] CacheReplay replay_cache(const Machine& machine, const AddressTrace& trace, const ReplayOptions& options);

}  // namespace dculab::sim
