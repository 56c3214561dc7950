#include "core/block_pool.hpp"

#include <bit>

namespace dculab {

BlockPool::BlockPool(int num_blocks, int block_size, double watermark, PrefixCaching prefix_caching,
                     PrefixEviction eviction)
    : num_blocks_(num_blocks),
      block_shift_(std::countr_zero(static_cast<unsigned>(block_size))),
      watermark_blocks_(static_cast<int>(watermark * num_blocks)),
      prefix_caching_(prefix_caching),
      reusable_(eviction) {}

int BlockPool::blocks_for(std::int64_t num_tokens) const {
  return static_cast<int>((num_tokens + block_size() - 1) >> block_shift_);
}

bool BlockPool::can_admit(std::int64_t num_tokens, const BlockTable& table) const {
  return blocks_for(num_tokens) - static_cast<int>(table.blocks_.size()) + watermark_blocks_ <= num_free();
}

int BlockPool::adopt_prefix(BlockTable& table, std::span<const TokenId> tokens) {
  if (prefix_caching_ == PrefixCaching::off) return 0;
  const auto size = static_cast<std::size_t>(block_size());
  for (std::size_t first = 0; first + size <= tokens.size(); first += size) {
    const auto last_tokens = tokens.subspan(first, size);
    const PrefixHash prefix = extend(table.published_, last_tokens);
    const std::optional<BlockId> block = prefixes_.find(prefix, last_tokens);
    if (!block) break;
    hold(*block);
    table.blocks_.push_back(*block);
    table.num_tokens_ += block_size();
    table.published_ = prefix;
    ++table.num_published_;
  }
  return table.num_tokens_;
}

void BlockPool::share(BlockTable& table, const BlockTable& owner, int num_tokens) {
  const auto shared = owner.blocks().first(static_cast<std::size_t>(blocks_for(num_tokens)));
  table.blocks_.assign(shared.begin(), shared.end());
  table.num_tokens_ = num_tokens;
  for (const BlockId block : shared) hold(block);
}

void BlockPool::count_uses(const BlockTable& table, int num_blocks) {
  for (const BlockId block : table.blocks().first(static_cast<std::size_t>(num_blocks))) reusable_.count_use(block);
}

void BlockPool::publish(BlockTable& table, std::span<const TokenId> tokens) {
  if (prefix_caching_ == PrefixCaching::off) return;
  const auto size = static_cast<std::size_t>(block_size());
  for (;;) {
    const auto index = static_cast<std::size_t>(table.num_published_);
    if ((index + 1) * size > tokens.size()) return;
    const auto last_tokens = tokens.subspan(index * size, size);
    table.published_ = extend(table.published_, last_tokens);
    prefixes_.insert(table.blocks_[index], table.published_, last_tokens);
    ++table.num_published_;
  }
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
  } else if (last_is_partial) {
    prefixes_.erase(table.blocks_.back());  // who filled it with other tokens is gone, and this table goes on in it
  }
  for (int index = size; index < new_size; ++index) table.blocks_.push_back(allocate());
  table.num_tokens_ += count;
  return true;
}

void BlockPool::truncate(BlockTable& table, std::int64_t num_tokens) {
  if (num_tokens >= table.num_tokens_) return;
  for (const auto kept = static_cast<std::size_t>(blocks_for(num_tokens)); table.blocks_.size() > kept;) {
    drop(table.blocks_.back());
    table.blocks_.pop_back();
  }
  table.num_tokens_ = static_cast<int>(num_tokens);
}

BlockTable BlockPool::fork(const BlockTable& table) {
  BlockTable result;
  result.blocks_ = table.blocks_;
  result.num_tokens_ = table.num_tokens_;
  result.num_published_ = table.num_published_;
  result.published_ = table.published_;
  for (const BlockId block : table.blocks_) ++references_[static_cast<std::size_t>(block)];
  return result;
}

void BlockPool::release(BlockTable& table) {
  // Last block first, so that the next sequence gets them in ascending order, and the beginning of a prefix outlives
  // what depends on it.
  for (auto block = table.blocks_.rbegin(); block != table.blocks_.rend(); ++block) drop(*block);
  table = BlockTable();
}

void BlockPool::drop_first_block(BlockTable& table) {
  drop(table.blocks_.front());
  table.blocks_.erase(table.blocks_.begin());
  table.num_tokens_ -= block_size();
}

std::int64_t BlockPool::slot(const BlockTable& table, int position) const {
  const std::int64_t block = table.blocks_[static_cast<std::size_t>(position >> block_shift_)];
  return (block << block_shift_) + position % block_size();
}

std::string BlockPool::audit_free(BlockId block, std::vector<bool>& is_free) const {
  const std::string label = "block " + std::to_string(block);
  if (block < 0 || block >= num_used_before()) return label + " does not exist but is free";
  if (is_free[static_cast<std::size_t>(block)]) return label + " is free twice";
  if (references(block) != 0) return label + " is free and has references";
  if (prefixes_.holds(block) != reusable_.contains(block)) return label + " is in the wrong list of free blocks";
  is_free[static_cast<std::size_t>(block)] = true;
  return {};
}

std::string BlockPool::audit() const {
  std::vector<bool> is_free(references_.size(), false);
  for (const BlockId block : free_)
    if (std::string found = audit_free(block, is_free); !found.empty()) return found;
  int reusable = 0;
  for (BlockId block = 0; block < num_used_before(); ++block) {
    if (!reusable_.contains(block)) continue;
    ++reusable;
    if (std::string found = audit_free(block, is_free); !found.empty()) return found;
  }
  if (reusable != reusable_.size()) return "the number of reusable blocks is wrong";
  if (std::string found = reusable_.audit(); !found.empty()) return found;
  for (BlockId block = 0; block < num_used_before(); ++block) {
    if (references(block) < 0) return "block " + std::to_string(block) + " has been dropped too often";
    if (references(block) == 0 && !is_free[static_cast<std::size_t>(block)])
      return "block " + std::to_string(block) + " is neither free nor held";
  }
  return {};
}

BlockId BlockPool::allocate() {
  BlockId block = 0;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else if (num_used_before() < num_blocks_) {
    block = num_used_before();
    references_.push_back(0);
  } else {
    block = reusable_.take_first();
    prefixes_.erase(block);
  }
  references_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void BlockPool::hold(BlockId block) {
  if (references_[static_cast<std::size_t>(block)]++ == 0) reusable_.remove(block);
}

void BlockPool::drop(BlockId block) {
  if (--references_[static_cast<std::size_t>(block)] > 0) return;
  if (prefixes_.holds(block))
    reusable_.push(block);
  else
    free_.push_back(block);
}

}  // namespace dculab
