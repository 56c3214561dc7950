#include "core/prefix_cache.hpp"

#include <algorithm>
#include <bit>

namespace dculab {
namespace {

// The finisher of SplitMix64: every bit of the argument changes every bit of the result with probability 1/2.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

}  // namespace

PrefixHash extend(const PrefixHash& parent, std::span<const TokenId> tokens) {
  // The constants keep the two halves apart, and the empty prefix away from the fixed point of mix.
  std::uint64_t low = mix(parent.low + 0x9E3779B97F4A7C15U);
  std::uint64_t high = mix(parent.high + 0xD1B54A32D192ED03U);
  for (const TokenId token : tokens) {
    const auto value = static_cast<std::uint64_t>(static_cast<std::uint32_t>(token));
    low = mix(low ^ (value + 0x9E3779B97F4A7C15U));
    high = mix(std::rotl(high, 23) + value * 0xD1B54A32D192ED03U + 1);
  }
  return {low, high};
}

std::optional<BlockId> PrefixCache::find(const PrefixHash& prefix, std::span<const TokenId> last_tokens) const {
  const auto found = blocks_.find(prefix);
  if (found == blocks_.end()) return std::nullopt;
  const Entry& entry = *entries_[static_cast<std::size_t>(found->second)];
  if (!std::ranges::equal(entry.tokens, last_tokens)) return std::nullopt;
  return found->second;
}

void PrefixCache::insert(BlockId block, const PrefixHash& prefix, std::span<const TokenId> last_tokens) {
  if (!blocks_.emplace(prefix, block).second) return;
  const auto index = static_cast<std::size_t>(block);
  if (entries_.size() <= index) entries_.resize(index + 1);
  entries_[index] = Entry{prefix, {last_tokens.begin(), last_tokens.end()}};
}

void PrefixCache::erase(BlockId block) {
  if (!holds(block)) return;
  std::optional<Entry>& entry = entries_[static_cast<std::size_t>(block)];
  blocks_.erase(entry->prefix);
  entry.reset();
}

}  // namespace dculab
