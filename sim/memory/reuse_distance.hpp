// How many distinct bytes lie between two touches of the same line: the reuse distances of an access stream, exactly.
//
// A Fenwick tree over time stamps holds a 1 at the last touch of every line; the distance is the sum after the line's
// own last touch. A fully associative LRU cache hits exactly the touches whose distance is below its capacity.
// Source: Mattson et al. 1970; Bennett and Kruskal 1975, "LRU stack processing".
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/set_associative_cache.hpp"

namespace dculab::sim {

// Bin 0: the line was touched last, distance 0. Bin b: distances in [2^(b-1), 2^b) bytes.
struct ReuseHistogram {
  Bytes line;
  std::array<std::uint64_t, 64> touches{};  // by bin
  std::uint64_t first_touches = 0;

  // Touches closer than `capacity`, counted by whole bins: exact where it is a power of two.
  [[nodiscard]] std::uint64_t closer_than(Bytes capacity) const;
  [[nodiscard]] std::uint64_t total() const;
};

class ReuseDistances {
 public:
  // Lines are numbered from 0 to `lines` - 1.
  ReuseDistances(LineNumber lines, Bytes line);

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // Distinct other lines touched since this one was, or kNever.
  std::uint64_t touch(LineNumber line);

  [[nodiscard]] const ReuseHistogram& histogram() const { return histogram_; }

 private:
  void add(std::uint32_t time, std::int32_t change);
  [[nodiscard]] std::uint32_t touched_until(std::uint32_t time) const;
  void renumber();

  ReuseHistogram histogram_;
  std::vector<std::uint32_t> last_touch_;  // [lines], 0 = never
  std::vector<LineNumber> line_at_;        // [capacity + 1], by time; kNoLine where a later touch has replaced it
  std::vector<std::uint32_t> tree_;        // [capacity + 1], Fenwick tree over times
  std::uint32_t now_ = 0;
  std::uint32_t distinct_ = 0;
};

}  // namespace dculab::sim
