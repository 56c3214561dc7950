// Which KV block holds which tokens after which prefix, so that a later request with the same beginning need not
// compute it again. Whole blocks only, found by a hash of the parent's hash and the block's tokens. Source of the
// scheme: vLLM, docs/design/v1/prefix_caching.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/batch.hpp"

namespace dculab {

// Stands for all tokens from a sequence's beginning to the end of a block. 128 bits: two prefixes that share one are
// not going to happen by chance; it is not meant to withstand somebody who looks for such a pair.
struct PrefixHash {
  std::uint64_t low = 0, high = 0;  // zero: the empty prefix

  friend bool operator==(const PrefixHash&, const PrefixHash&) = default;
};

// The hash of `parent` followed by the tokens of one block.
[[nodiscard]] PrefixHash extend(const PrefixHash& parent, std::span<const TokenId> tokens);

class PrefixCache {
 public:
  [[nodiscard]] std::optional<BlockId> find(const PrefixHash& prefix, std::span<const TokenId> last_tokens) const;

  // Remembers that `block` ends `prefix`. Nothing happens when another block does already: one copy is enough.
  void insert(BlockId block, const PrefixHash& prefix, std::span<const TokenId> last_tokens);

  void erase(BlockId block);

  [[nodiscard]] bool holds(BlockId block) const {
    return static_cast<std::size_t>(block) < entries_.size() && entries_[static_cast<std::size_t>(block)].has_value();
  }
  [[nodiscard]] int num_blocks() const { return static_cast<int>(blocks_.size()); }  // that are remembered

 private:
  struct Entry {
    PrefixHash prefix;
    std::vector<TokenId> tokens;  // [block_size], compared before a block is handed out
  };
  struct Hasher {
    std::size_t operator()(const PrefixHash& hash) const { return static_cast<std::size_t>(hash.low); }
  };

  std::vector<std::optional<Entry>> entries_;  // [largest block ever inserted + 1]
  std::unordered_map<PrefixHash, BlockId, Hasher> blocks_;
};

}  // namespace dculab
