// Which lines a cache holds: set-associative, least recently used goes first.
//
// A set lists its lines from the most to the least recently used, so that one pass over it finds a line, moves it to
// the front and pushes the oldest one out. Lines are numbers (address / line size), not data.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// What is assumed of a level that does not state its ways: gem5's GPU model has 16 in the L1 and in the L2.
inline constexpr int kDefaultWays = 16;

// How a line finds its set: by its number modulo the sets, or after folding the higher bits of the number into the
// lower ones, as caches of many channels do so that strides of a power of two spread.
enum class SetIndex : std::uint8_t { modulo, hashed };

using LineNumber = std::uint32_t;
inline constexpr LineNumber kNoLine = std::numeric_limits<LineNumber>::max() >> 1;

enum class LineState : std::uint8_t { clean, dirty };

class SetAssociativeCache {
 public:
  // `size` and `line` in bytes. Fewer lines than ways: fully associative.
  SetAssociativeCache(double size, double line, int ways, SetIndex index);

  struct Touch {
    bool hit = false;
    LineNumber written_back = kNoLine;  // the dirty line that had to go
  };

  // Makes `line` the most recent of its set; one that was dirty stays so.
  Touch touch(LineNumber line, LineState state) {
    std::uint32_t* way = set_of(line);
    std::uint32_t* const newest = way;
    std::uint32_t* const end = way + ways_;
    std::uint32_t moved = entry(line, state);
    while (end - way >= 4 && move_four(way, line, moved)) way += 4;
    for (; way != end; ++way) {
      moved = std::exchange(*way, moved);
      if (moved >> 1 != line) continue;
      *newest |= moved & 1;
      return {true, kNoLine};
    }
    return {false, (moved & 1) != 0 ? moved >> 1 : kNoLine};
  }

  // The same, but a line that is not there does not come in. Returns whether it is there.
  bool touch_if_present(LineNumber line) {
    std::uint32_t* set = set_of(line);
    std::uint32_t* found = std::find_if(set, set + ways_, [line](std::uint32_t each) { return each >> 1 == line; });
    if (found == set + ways_) return false;
    std::rotate(set, found, found + 1);
    return true;
  }

  // Calls visit(line) for every dirty line, set by set, and makes it clean.
  template <class Visit>
  void clean(Visit visit) {
    for (std::uint32_t& each : entries_)
      if ((each & 1) != 0) visit((each &= ~std::uint32_t{1}) >> 1);
  }

  [[nodiscard]] std::uint32_t sets() const { return sets_; }
  [[nodiscard]] std::uint32_t ways() const { return ways_; }

 private:
  // Four entries in a vector register: replays spend their time here.
  using Four = std::uint32_t __attribute__((vector_size(16)));

  // Moves four ways one place back, `moved` in at the front and out at the end; false if `line` is among them.
  static bool move_four(std::uint32_t* way, LineNumber line, std::uint32_t& moved) {
    Four four;
    std::memcpy(&four, way, sizeof four);
    const auto same = std::bit_cast<std::array<std::uint64_t, 2>>((four >> 1) == line);
    if ((same[0] | same[1]) != 0) return false;
    const Four shifted{moved, four[0], four[1], four[2]};
    std::memcpy(way, &shifted, sizeof shifted);
    moved = four[3];
    return true;
  }

  static std::uint32_t entry(LineNumber line, LineState state) {
    return line << 1 | (state == LineState::dirty ? 1U : 0U);
  }

  std::uint32_t* set_of(LineNumber line) {
    std::uint32_t folded = line;
    if (index_ == SetIndex::hashed) folded ^= line >> fold_ ^ line >> std::min(2 * fold_, 31U);
    const std::uint32_t set = mask_ != 0 ? folded & mask_ : folded % sets_;
    return entries_.data() + std::size_t{set} * ways_;
  }

  SetIndex index_;
  std::uint32_t ways_;
  std::uint32_t sets_;
  std::uint32_t mask_;                  // sets - 1 where that is a power of two above 1, else 0
  std::uint32_t fold_;                  // bits of a set's number
  std::vector<std::uint32_t> entries_;  // [sets, ways]: line * 2 + dirty
};

}  // namespace dculab::sim
