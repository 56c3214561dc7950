#include "engine/tokenizer/merge_table.hpp"

#include <bit>

namespace dculab::engine {
namespace {

constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // 2^64 / phi: Fibonacci hashing

std::uint64_t pair_of(TokenId left, TokenId right) {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32U) | static_cast<std::uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(std::size_t num_merges) : slots_(std::bit_ceil(2 * num_merges + 2)) {}

std::size_t MergeTable::slot_of(TokenId left, TokenId right) const {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = (pair * kGoldenRatio) >> (64U - static_cast<unsigned>(std::countr_zero(slots_.size())));
  while (slots_[slot].pair != pair && slots_[slot].pair != kEmpty) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  slots_[slot_of(left, right)] = {pair_of(left, right), merge};
}

}  // namespace dculab::engine
