// Which tokens of a sequence keep their K and V in the cache, when the others go, and which of those that stay a decode
// loads.
//
// What is in the cache when a token is computed follows from its position alone, never from how the work was cut into
// steps, so neither chunks nor preemption change a result. docs/reference/kv-retention.md has the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/dtype.hpp"

namespace dculab {

enum class RetentionPolicy : std::uint8_t {
  all,
  window,         // the last window_tokens, whose positions stay as they were
  sinks,          // StreamingLLM: the first sink_tokens and the last window_tokens, at positions within the cache
  heavy_hitters,  // H2O: heavy_hitter_tokens with the largest attention sums, per layer and KV head, and window_tokens
  critical_blocks,  // Quest: all stay, and a decode loads the blocks whose keys may matter, per layer and KV head
};

// As scenarios write it: "all", "window", "sinks", "heavy_hitters", "critical_blocks".
[[nodiscard]] std::string_view name(RetentionPolicy policy);

// Reads the name, also with '-' for '_'.
[[nodiscard]] std::optional<RetentionPolicy> parse_retention_policy(std::string_view text);

struct KvRetention {
  RetentionPolicy policy = RetentionPolicy::all;
  int sink_tokens = 4;
  int window_tokens = 0;
  int heavy_hitter_tokens = 0;
  double kv_budget = 0;   // share of a sequence's blocks that a decode loads, in (0, 1]
  int recent_blocks = 1;  // of them the last, always: the one that is being written at least

  friend bool operator==(const KvRetention&, const KvRetention&) = default;
};

// How K and V are stored, and which of them.
struct KvChoice {
  Dtype dtype = Dtype::f16;
  RetentionPolicy policy = RetentionPolicy::all;
};

// How many tokens' worth of KV blocks a sequence holds, where that is not its number of tokens: recurrent layers keep a
// state, and a program may free what has left the window of layers that have one.
struct KvDemand {
  double state_tokens = 0;  // a sequence's state over the KV bytes of a token in all layers
  int window = 0;           // 0: nothing is freed
  double beyond = 1;        // share of a token's bytes that layers without a window have

  [[nodiscard]] std::int64_t operator()(std::int64_t tokens) const {
    return state_tokens == 0 && window == 0 ? tokens : of_other_layers(tokens);
  }
  friend bool operator==(const KvDemand&, const KvDemand&) = default;

 private:
  [[nodiscard]] std::int64_t of_other_layers(std::int64_t tokens) const;
};

// Tokens of a sequence that are in the cache at most. A window loses whole blocks, so it may hold up to
// block_size - 1 tokens more than were asked for; heavy hitters go one by one.
[[nodiscard]] std::int64_t kv_capacity(const KvRetention& retention, int block_size);

// Tokens that go when there is no room for another one: a block, or one token.
[[nodiscard]] int kv_eviction_unit(const KvRetention& retention, int block_size);

// Tokens that must go before a sequence with `cached` tokens in the cache can be given another one.
[[nodiscard]] int kv_tokens_to_evict(const KvRetention& retention, int block_size, int cached);

// Tokens that are gone when the token at `position` is computed.
[[nodiscard]] int kv_tokens_evicted_at(const KvRetention& retention, int block_size, std::int64_t position);

// Blocks that a decode of one token loads of `num_blocks`: the budget's share, rounded up; the first one and the recent
// ones are always among them. All where there is no budget.
[[nodiscard]] int kv_blocks_loaded(const KvRetention& retention, int num_blocks);

// Tokens in them, of `context` in the cache, the new one included. The last block, which may not be full, is loaded.
[[nodiscard]] inline int kv_tokens_loaded(const KvRetention& retention, int block_size, int context) {
  if (retention.policy == RetentionPolicy::all) return context;
  const int blocks = (context + block_size - 1) / block_size;
  return context - (blocks - kv_blocks_loaded(retention, blocks)) * block_size;
}

}  // namespace dculab
