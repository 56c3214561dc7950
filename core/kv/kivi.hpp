// Which tokens of a kivi4 or kivi2 KV cache are quantized, and what a step moves of it: groups of 32 tokens in the
// blocks, the newest tokens in F16 beside them (the residual). The rules: docs/reference/kv-cache.md.
#pragma once

#include <algorithm>

#include "core/dtype.hpp"

namespace dculab {

inline constexpr int kKiviGroup = 32;  // tokens that are quantized together; also values that share a scale

[[nodiscard]] constexpr bool is_kivi(Dtype dtype) { return dtype == Dtype::kivi4 || dtype == Dtype::kivi2; }

// Tokens at the start of a sequence that a query sees quantized when it is the last of `context` tokens: as many whole
// groups as it takes for at most `residual_tokens` to remain.
[[nodiscard]] constexpr int kivi_quantized_tokens(int context, int residual_tokens) {
  const int beyond = context - residual_tokens;
  return beyond <= 0 ? 0 : (beyond + kKiviGroup - 1) / kKiviGroup * kKiviGroup;
}

// Tokens whose K and V one step moves for a sequence, each counted once. Attention reads the new tokens where they were
// computed, not from the cache.
struct KiviTraffic {
  int quantized_read = 0;    // by attention, from the blocks
  int residual_read = 0;     // by attention, in F16
  int grouped = 0;           // quantized and written to the blocks
  int residual_grouped = 0;  // of these, read from the residual in F16; the others are new
  int residual_written = 0;  // in F16
};

// Of a step from `computed` to `context` tokens, whose first query loads tokens from `first_loaded` on.
[[nodiscard]] constexpr KiviTraffic kivi_traffic(int computed, int context, int first_loaded, int residual_tokens) {
  KiviTraffic traffic;
  traffic.quantized_read = std::max(0, kivi_quantized_tokens(context, residual_tokens) - first_loaded);
  const int seen_in_full = std::max(first_loaded, kivi_quantized_tokens(computed + 1, residual_tokens));
  traffic.residual_read = std::max(0, computed - seen_in_full);
  const int first_group = computed / kKiviGroup * kKiviGroup;
  traffic.grouped = context / kKiviGroup * kKiviGroup - first_group;
  traffic.residual_grouped = traffic.grouped > 0 ? computed - first_group : 0;
  traffic.residual_written = std::min(context - computed, residual_tokens);
  return traffic;
}

}  // namespace dculab
