// Which two tokens merge into which, and which merge goes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/batch.hpp"

namespace dculab::engine {

struct Merge {
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  std::int32_t rank = kNever;  // lower goes first
  TokenId token = 0;           // what the two become
};

// A hash table with linear probing: looking up a pair is the inner loop of encoding.
class MergeTable {
 public:
  explicit MergeTable(std::size_t num_merges);

  // At most `num_merges` pairs. A pair that is there already gets the new merge.
  void insert(TokenId left, TokenId right, Merge merge);

  // The rank is Merge::kNever when the pair does not merge.
  [[nodiscard]] Merge find(TokenId left, TokenId right) const { return slots_[slot_of(left, right)].merge; }

 private:
  struct Slot {
    std::uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // ids are not negative, so no pair looks like this

  [[nodiscard]] std::size_t slot_of(TokenId left, TokenId right) const;

  std::vector<Slot> slots_;  // [a power of two, at most half full]
};

}  // namespace dculab::engine
