// Blocks from the least to the most recently used: adding, removing and taking the oldest in constant time.
#pragma once

#include <vector>

#include "core/batch.hpp"

namespace dculab {

class BlockOrder {
 public:
  explicit BlockOrder(int num_blocks) : links_(static_cast<std::size_t>(num_blocks) + 1, Link{num_blocks, num_blocks}) {
    for (BlockId block = 0; block < num_blocks; ++block) link(block) = {kAbsent, kAbsent};
  }

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool contains(BlockId block) const { return links_[static_cast<std::size_t>(block)].next != kAbsent; }

  // Precondition: size() > 0.
  [[nodiscard]] BlockId oldest() const { return links_.back().next; }

  // Adds a block as the newest. Precondition: it is not there.
  void push(BlockId block) {
    const BlockId end = end_mark(), previous = link(end).previous;
    link(block) = {previous, end};
    link(previous).next = block;
    link(end).previous = block;
    ++size_;
  }

  // Precondition: it is there.
  void remove(BlockId block) {
    const Link removed = link(block);
    link(removed.previous).next = removed.next;
    link(removed.next).previous = removed.previous;
    link(block) = {kAbsent, kAbsent};
    --size_;
  }

 private:
  static constexpr BlockId kAbsent = -1;
  struct Link {
    BlockId previous, next;
  };

  [[nodiscard]] BlockId end_mark() const { return static_cast<BlockId>(links_.size()) - 1; }
  [[nodiscard]] Link& link(BlockId block) { return links_[static_cast<std::size_t>(block)]; }

  std::vector<Link> links_;  // [num_blocks + 1]: a ring, the last one before the oldest and after the newest
  int size_ = 0;
};

}  // namespace dculab
