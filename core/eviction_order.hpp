// Which KV block is given out first, of those that no sequence holds but whose contents are remembered.
//
//   lru  the one that was held longest ago
//   lfu  the one of the lowest priority, of equal ones the one that was held longest ago:
//
//          priority = uses + age when it was held last
//          age      = the priority of the block that was given out last; 0 at first
//
//        Least frequently used with dynamic aging, LFU-DA: a block that was used often outlives those of passing
//        requests, but not for ever. Source: M. Arlitt, L. Cherkasova, J. Dilley, R. Friedrich, T. Jin, "Evaluating
//        content management techniques for Web proxy caches", ACM SIGMETRICS Performance Evaluation Review 27(4), 2000.
//
// Uses: 1, and one more for each sequence that found the block. The beginning of a prompt has no fewer than what
// follows it and is held no shorter, so it does not go first.
//
// lru takes constant time for each change, lfu time logarithmic in the blocks.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "core/block_order.hpp"

namespace dculab {

enum class PrefixEviction : std::uint8_t { lru, lfu };
[[nodiscard]] std::string_view name(PrefixEviction eviction);

class EvictionOrder {
 public:
  explicit EvictionOrder(PrefixEviction eviction) : eviction_(eviction) {}

  [[nodiscard]] int size() const { return by_time_.size(); }
  [[nodiscard]] bool contains(BlockId block) const { return by_time_.contains(block); }

  // A sequence has found the block's contents. Precondition: contains(block) is false, for the sequence holds it.
  void count_use(BlockId block);

  // The block is held no longer, or again. Preconditions: it is not there; it is there.
  void push(BlockId block);
  void remove(BlockId block);

  // Removes the block that goes first, whose uses are forgotten. Precondition: size() > 0.
  BlockId take_first();

  // What contradicts itself; empty when nothing does. Linear in the blocks: for tests.
  [[nodiscard]] std::string audit() const;

 private:
  struct Place {
    std::int64_t priority;
    std::int64_t turn;  // orders equal priorities by the time
    BlockId block;
    auto operator<=>(const Place&) const = default;
  };
  // Of lfu. A block that was never there, or has been given out since, is as one with a single use.
  struct Use {
    std::int64_t uses = 1;
    std::int64_t priority = 0, turn = 0;  // while it is there
  };
  [[nodiscard]] Use& use_of(BlockId block);

  PrefixEviction eviction_;
  BlockOrder by_time_;
  std::set<Place> by_priority_;  // lfu: the blocks of by_time_
  std::vector<Use> uses_;        // [largest block ever used + 1]
  std::int64_t age_ = 0, turns_ = 0;
};

}  // namespace dculab
