// Who holds which KV block: a fixed pool of equal blocks with reference counts, and one block table per sequence.
//
// With prefix caching a full block that no sequence holds any more keeps its contents until its memory is needed: it
// is free, but given out last, in the order of core/eviction_order.hpp.
//
// Memory grows with the blocks that have ever been given out, not with those there are: a small model on a large
// machine has room for far more than it will ever fill.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/eviction_order.hpp"
#include "core/executor.hpp"
#include "core/prefix_cache.hpp"

namespace dculab {

// The blocks of one sequence. Move-only, because each table counts as one reference to each of its blocks;
// only a BlockPool changes it, and it must be released to its pool before it goes away.
class BlockTable {
 public:
  BlockTable() = default;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  BlockTable(BlockTable&& other) noexcept
      : blocks_(std::exchange(other.blocks_, {})),
        num_tokens_(std::exchange(other.num_tokens_, 0)),
        num_published_(std::exchange(other.num_published_, 0)),
        published_(std::exchange(other.published_, {})) {}
  BlockTable& operator=(BlockTable&& other) noexcept {
    std::swap(blocks_, other.blocks_);
    std::swap(num_tokens_, other.num_tokens_);
    std::swap(num_published_, other.num_published_);
    std::swap(published_, other.published_);
    return *this;
  }

  [[nodiscard]] std::span<const BlockId> blocks() const { return blocks_; }  // [ceil(num_tokens / block_size)]
  [[nodiscard]] int num_tokens() const { return num_tokens_; }               // tokens there is room reserved for

 private:
  friend class BlockPool;
  std::vector<BlockId> blocks_;
  int num_tokens_ = 0;
  int num_published_ = 0;  // leading blocks that the prefix cache has been told of
  PrefixHash published_;   // of their tokens
};

enum class PrefixCaching : std::uint8_t { off, on };

// The most blocks of a pool: an int holds their number and what is added to it.
inline constexpr int kMostBlocks = 1 << 30;

class BlockPool {
 public:
  // vLLM's default; source: vllm/core/block_manager.py.
  static constexpr double kDefaultWatermark = 0.01;

  // `watermark` is the share of blocks that admitting a request must leave free for those already running.
  // Preconditions: 0 <= num_blocks <= kMostBlocks; block_size is a power of two from 1 to 256; 0 <= watermark < 1.
  BlockPool(int num_blocks, int block_size, double watermark = kDefaultWatermark,
            PrefixCaching prefix_caching = PrefixCaching::off, PrefixEviction eviction = PrefixEviction::lru);

  [[nodiscard]] int num_blocks() const { return num_blocks_; }
  [[nodiscard]] int num_free() const {
    return num_blocks_ - num_used_before() + static_cast<int>(free_.size()) + reusable_.size();
  }
  [[nodiscard]] int block_size() const { return 1 << block_shift_; }
  [[nodiscard]] int watermark_blocks() const { return watermark_blocks_; }

  // Blocks that hold `num_tokens` tokens.
  [[nodiscard]] int blocks_for(std::int64_t num_tokens) const;

  // Whether a new sequence of `num_tokens` tokens, which holds the blocks of `table` already, leaves the watermark
  // free.
  [[nodiscard]] bool can_admit(std::int64_t num_tokens, const BlockTable& table = {}) const;

  // Gives an empty table the blocks of the longest prefix of `tokens` that is cached, whole blocks, and returns how
  // many tokens that is. 0 without prefix caching.
  int adopt_prefix(BlockTable& table, std::span<const TokenId> tokens);

  // Gives an empty table the blocks of the first `num_tokens` tokens of `owner`, the last of them perhaps in part: who
  // goes on from there copies it. Precondition: owner.num_tokens() >= num_tokens.
  void share(BlockTable& table, const BlockTable& owner, int num_tokens);

  // The first `num_blocks` blocks of the table were adopted by a sequence that is served: a use of each.
  void count_uses(const BlockTable& table, int num_blocks);

  // `tokens` are those whose K and V the table's blocks hold, from the first on, or will hold when the step that is
  // being scheduled has run: their full blocks can be adopted from now on. Does nothing without prefix caching.
  void publish(BlockTable& table, std::span<const TokenId> tokens);

  // Reserves slots for `count` more tokens. If the first of them falls into a block that another table shares, the
  // table gets its own copy and the copy to be made is added to `copies`; what the prefix cache remembers of a block
  // that is the table's own is forgotten. False, and nothing changed, when the pool has too few blocks.
  [[nodiscard]] bool append(BlockTable& table, int count, std::vector<BlockCopy>& copies);

  // Gives the slots of all but the first `num_tokens` tokens back, and blocks without tokens. Precondition: none of
  // these blocks was published.
  void truncate(BlockTable& table, std::int64_t num_tokens);

  // A second table over the same blocks.
  [[nodiscard]] BlockTable fork(const BlockTable& table);

  // Gives the blocks back and empties the table.
  void release(BlockTable& table);

  // Gives the first block back: its tokens are no longer needed. Precondition: the table has a full block.
  void drop_first_block(BlockTable& table);

  // Where a token's K and V lie: block * block_size + offset, as in vLLM's slot_mapping.
  [[nodiscard]] std::int64_t slot(const BlockTable& table, int position) const;

  // Full blocks whose contents are remembered, in use or not.
  [[nodiscard]] int num_cached() const { return prefixes_.num_blocks(); }

  // Tables that hold the block; 0 = free.
  [[nodiscard]] int references(BlockId block) const {
    return block < num_used_before() ? references_[static_cast<std::size_t>(block)] : 0;
  }

  // What contradicts itself in the pool's books; empty when nothing does. Linear in the blocks used: for tests.
  [[nodiscard]] std::string audit() const;

 private:
  // Blocks 0, 1, ... that have been given out at least once.
  [[nodiscard]] int num_used_before() const { return static_cast<int>(references_.size()); }
  BlockId allocate();
  void hold(BlockId block);
  void drop(BlockId block);
  [[nodiscard]] std::string audit_free(BlockId block, std::vector<bool>& is_free) const;

  int num_blocks_ = 0;
  int block_shift_ = 0;  // log2(block_size)
  int watermark_blocks_ = 0;
  std::vector<int> references_;  // [num_used_before()]
  std::vector<BlockId> free_;    // of those used before. A stack: the block freed last is still warm in the caches
  PrefixCaching prefix_caching_;
  PrefixCache prefixes_;
  EvictionOrder reusable_;  // blocks that no sequence holds and prefixes_ knows
};

}  // namespace dculab
