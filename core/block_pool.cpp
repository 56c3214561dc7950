#include "core/block_pool.hpp"

#include <bit>
#include <numeric>

namespace dculab {

BlockPool::BlockPool(int num_blocks, int block_size, double watermark)
    : block_shift_(std::countr_zero(static_cast<unsigned>(block_size))),
      watermark_blocks_(static_cast<int>(watermark * num_blocks)),
      references_(static_cast<std::size_t>(num_blocks), 0),
      free_(static_cast<std::size_t>(num_blocks)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

int BlockPool::blocks_for(std::int64_t num_tokens) const {
  return static_cast<int>((num_tokens + block_size() - 1) >> block_shift_);
}

bool BlockPool::can_admit(std::int64_t num_tokens) const {
  return blocks_for(num_tokens) + watermark_blocks_ <= num_free();
}

bool BlockPool::append(BlockTable& table, int count, std::vector<BlockCopy>& copies) {
  if (count == 0) return true;
  const bool last_is_partial = table.num_tokens_ % block_size() != 0;
  const bool copies_last = last_is_partial && references(table.blocks_.back()) > 1;
  const int size = static_cast<int>(table.blocks_.size());
  const int new_size = blocks_for(static_cast<std::int64_t>(table.num_tokens_) + count);
  if (new_size - size + (copies_last ? 1 : 0) > num_free()) return false;

  if (copies_last) {
    const BlockId shared = std::exchange(table.blocks_.back(), allocate());
    drop(shared);
    copies.push_back({.source = shared, .destination = table.blocks_.back()});
  }
  for (int index = size; index < new_size; ++index) table.blocks_.push_back(allocate());
  table.num_tokens_ += count;
  return true;
}

BlockTable BlockPool::fork(const BlockTable& table) {
  BlockTable result;
  result.blocks_ = table.blocks_;
  result.num_tokens_ = table.num_tokens_;
  for (const BlockId block : table.blocks_) ++references_[static_cast<std::size_t>(block)];
  return result;
}

void BlockPool::release(BlockTable& table) {
  // Last block first, so that the next sequence gets them in ascending order.
  for (auto block = table.blocks_.rbegin(); block != table.blocks_.rend(); ++block) drop(*block);
  table.blocks_.clear();
  table.num_tokens_ = 0;
}

std::int64_t BlockPool::slot(const BlockTable& table, int position) const {
  const std::int64_t block = table.blocks_[static_cast<std::size_t>(position >> block_shift_)];
  return (block << block_shift_) + position % block_size();
}

std::string BlockPool::audit() const {
  std::vector<bool> is_free(references_.size(), false);
  for (const BlockId block : free_) {
    const std::string label = "block " + std::to_string(block);
    if (block < 0 || block >= num_blocks()) return label + " does not exist but is free";
    if (is_free[static_cast<std::size_t>(block)]) return label + " is free twice";
    if (references(block) != 0) return label + " is free and has references";
    is_free[static_cast<std::size_t>(block)] = true;
  }
  for (BlockId block = 0; block < num_blocks(); ++block) {
    if (references(block) < 0) return "block " + std::to_string(block) + " has been dropped too often";
    if (references(block) == 0 && !is_free[static_cast<std::size_t>(block)])
      return "block " + std::to_string(block) + " is neither free nor held";
  }
  return {};
}

BlockId BlockPool::allocate() {
  const BlockId block = free_.back();
  free_.pop_back();
  references_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void BlockPool::drop(BlockId block) {
  if (--references_[static_cast<std::size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace dculab
