// The caches of a machine and its DRAM, and what each of them is asked for.
//
// Loads: a level answers the lines it holds; neighbouring lines that it misses are asked of the next level together,
// and come in here. Stores depend on the level:
//   cache of one compute unit of a GPU   written through; a line that is there stays, one that is not does not come in
//   shared cache of a GPU                written back; a line that is not there comes in, and which of its bytes were
//                                        stored is kept: the others are read from the next level when they are asked
//                                        for
//   cache of a CPU                       written back; a line that is not there comes in, and is read from the next
//                                        level first unless all of it is stored
// A dirty line that has to go is stored to the next level. Each level fills on its own misses only and throws nothing
// out elsewhere. Sources: docs/reference/cache-replay.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/address_trace.hpp"
#include "core/op.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/set_associative_cache.hpp"
#include "sim/memory/traced_buffers.hpp"

namespace dculab::sim {

inline constexpr std::size_t kOperandRoles = static_cast<std::size_t>(OperandRole::output) + 1;

// What a level was asked for.
struct LineRequests {
  std::uint64_t lines = 0;
  std::uint64_t hits = 0;  // lines that were there; of DRAM every line
  Bytes bytes;             // DRAM moves whole lines

  [[nodiscard]] double hit_rate() const { return lines == 0 ? 0 : static_cast<double>(hits) / double(lines); }
  LineRequests& operator+=(const LineRequests& other);
};

struct ReplayedLevel {
  std::string name;
  Bytes line;
  std::array<std::array<LineRequests, kOperandRoles>, 2> requests;  // by AccessKind, by OperandRole

  [[nodiscard]] LineRequests of(AccessKind kind) const;
  [[nodiscard]] LineRequests of(OperandRole role) const;
  [[nodiscard]] LineRequests total() const;
  [[nodiscard]] LineRequests& at(AccessKind kind, OperandRole role) {
    return requests[static_cast<std::size_t>(kind)][static_cast<std::size_t>(role)];
  }
};

// Addresses from `begin` up to `end`, of which `bytes` are accessed: less than all where there are gaps.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool covers(std::uint64_t first, std::uint64_t last) const {
    return begin <= first && last <= end && bytes == end - begin;
  }
};

class CacheHierarchy {
 public:
  // Cold. Throws std::invalid_argument where a line is not a power of two, or so short that lines have no number.
  // Throws InputError where a level's caches have more lines than memory should hold.
  CacheHierarchy(const Machine& machine, const RoleMap& roles, SetIndex private_index, SetIndex shared_index);

  void load(int unit, const AddressRange& range, OperandRole role) { load(0, unit, range, role); }
  // A range with gaps lies within one line of the first level.
  void store(int unit, const AddressRange& range, OperandRole role) { store(0, unit, range, role); }
  // Stores what is still dirty down to DRAM.
  void write_back();

  [[nodiscard]] std::vector<ReplayedLevel> levels() const;

 private:
  enum class StorePolicy : std::uint8_t { write_through, write_back, write_back_bytes };
  struct Level {
    ReplayedLevel counts;
    StorePolicy policy = StorePolicy::write_back;
    int line_bits = 0;
    std::vector<SetAssociativeCache> caches;  // one, or one per compute unit; none: DRAM
    // write_back_bytes: of lines that were stored in part and never read, how many bytes. Those of one launch are taken
    // to be stored once.
    std::unordered_map<LineNumber, std::uint64_t> stored_in_part;

    SetAssociativeCache& cache(int unit) { return caches[caches.size() == 1 ? 0 : static_cast<std::size_t>(unit)]; }
  };

  void load(std::size_t depth, int unit, const AddressRange& range, OperandRole role);
  void store(std::size_t depth, int unit, const AddressRange& range, OperandRole role);
  void store_line(std::size_t depth, int unit, std::uint64_t line, bool hit, const AddressRange& range,
                  OperandRole role);
  void move(Level& dram, AccessKind kind, const AddressRange& range, OperandRole role);
  void write_back(std::size_t depth, int unit, LineNumber line);

  const RoleMap& roles_;
  std::vector<Level> levels_;
};

}  // namespace dculab::sim
