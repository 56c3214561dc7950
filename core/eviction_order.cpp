#include "core/eviction_order.hpp"

namespace dculab {

std::string_view name(PrefixEviction eviction) { return eviction == PrefixEviction::lfu ? "lfu" : "lru"; }

EvictionOrder::Use& EvictionOrder::use_of(BlockId block) {
  const auto index = static_cast<std::size_t>(block);
  if (uses_.size() <= index) uses_.resize(index + 1);
  return uses_[index];
}

void EvictionOrder::count_use(BlockId block) {
  if (eviction_ == PrefixEviction::lfu) ++use_of(block).uses;
}

void EvictionOrder::push(BlockId block) {
  by_time_.push(block);
  if (eviction_ == PrefixEviction::lru) return;
  Use& use = use_of(block);
  use.priority = use.uses + age_;
  use.turn = turns_++;
  by_priority_.insert({use.priority, use.turn, block});
}

void EvictionOrder::remove(BlockId block) {
  by_time_.remove(block);
  if (eviction_ == PrefixEviction::lru) return;
  const Use& use = use_of(block);
  by_priority_.erase({use.priority, use.turn, block});
}

BlockId EvictionOrder::take_first() {
  if (eviction_ == PrefixEviction::lru) {
    const BlockId oldest = by_time_.oldest();
    by_time_.remove(oldest);
    return oldest;
  }
  const Place first = *by_priority_.begin();
  age_ = first.priority;
  remove(first.block);
  use_of(first.block) = {};
  return first.block;
}

std::string EvictionOrder::audit() const {
  if (eviction_ == PrefixEviction::lru) return {};
  if (static_cast<int>(by_priority_.size()) != size()) return "not every block that may be given out has a priority";
  for (const Place& place : by_priority_) {
    const std::string label = "block " + std::to_string(place.block);
    const Use& use = uses_[static_cast<std::size_t>(place.block)];
    if (!contains(place.block)) return label + " has a priority but is not to be given out";
    if (use.priority != place.priority || use.turn != place.turn) return label + " stands in a place it does not know";
    if (use.uses < 1 || place.priority < age_) return label + " should have been given out before the last one";
  }
  return {};
}

}  // namespace dculab
