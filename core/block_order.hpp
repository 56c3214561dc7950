// Blocks from the least to the most recently used: adding, removing and taking the oldest in constant time.
#pragma once

#include <vector>

#include "core/batch.hpp"

namespace dculab {

class BlockOrder {
 public:
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool contains(BlockId block) const {
    return index(block) < links_.size() && links_[index(block)].next != kAbsent;
  }

  // Precondition: size() > 0.
  [[nodiscard]] BlockId oldest() const { return links_[index(kEnd)].next; }

  // Adds a block as the newest. Precondition: it is not there.
  void push(BlockId block) {
    if (links_.size() <= index(block)) links_.resize(index(block) + 1, {kAbsent, kAbsent});
    const BlockId previous = link(kEnd).previous;
    link(block) = {previous, kEnd};
    link(previous).next = block;
    link(kEnd).previous = block;
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
  static constexpr BlockId kEnd = -1, kAbsent = -2;
  struct Link {
    BlockId previous, next;
  };

  [[nodiscard]] static std::size_t index(BlockId block) { return static_cast<std::size_t>(block + 1); }
  [[nodiscard]] Link& link(BlockId block) { return links_[index(block)]; }

  // A ring: kEnd, the first link, stands before the oldest and after the newest. Grows to the largest block ever added.
  std::vector<Link> links_{{kEnd, kEnd}};
  int size_ = 0;
};

}  // namespace dculab
