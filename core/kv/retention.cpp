#include "core/kv/retention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/kv/table.hpp"

namespace dculab {

std::string_view name(RetentionPolicy policy) { return kv_policy(policy).name; }

std::optional<RetentionPolicy> parse_retention_policy(std::string_view text) {
  std::string word(text);
  std::ranges::replace(word, '-', '_');
  const auto found = std::ranges::find(kKvPolicies, word, &KvPolicy::name);
  return found == kKvPolicies.end() ? std::nullopt : std::optional(found->policy);
}

std::int64_t KvDemand::of_other_layers(std::int64_t tokens) const {
  const std::int64_t within = window > 0 ? std::min<std::int64_t>(tokens, window) : tokens;
  const double more = state_tokens + beyond * static_cast<double>(tokens - within);
  return within + static_cast<std::int64_t>(std::ceil(more));
}

std::int64_t kv_capacity(const KvRetention& retention, int block_size) {
  const KvPolicy& policy = kv_policy(retention.policy);
  if (policy.eviction == KvEviction::never) return std::numeric_limits<std::int64_t>::max();
  std::int64_t tokens = retention.window_tokens;
  if (policy.has_sinks) tokens += retention.sink_tokens;
  if (policy.has_heavy_hitters) tokens += retention.heavy_hitter_tokens;
  return tokens + kv_eviction_unit(retention, block_size) - 1;
}

int kv_eviction_unit(const KvRetention& retention, int block_size) {
  return kv_policy(retention.policy).eviction == KvEviction::one_token ? 1 : block_size;
}

int kv_tokens_to_evict(const KvRetention& retention, int block_size, int cached) {
  return cached < kv_capacity(retention, block_size) ? 0 : kv_eviction_unit(retention, block_size);
}

int kv_tokens_evicted_at(const KvRetention& retention, int block_size, std::int64_t position) {
  const std::int64_t surplus = position + 1 - kv_capacity(retention, block_size);
  if (surplus <= 0) return 0;
  const int unit = kv_eviction_unit(retention, block_size);
  return static_cast<int>((surplus + unit - 1) / unit * unit);
}

int kv_blocks_loaded(const KvRetention& retention, int num_blocks) {
  if (!kv_policy(retention.policy).has_budget) return num_blocks;
  constexpr double kRounding = 1e-9;  // 0.1 of 30 blocks is 3
  const int share = static_cast<int>(std::ceil(retention.kv_budget * num_blocks - kRounding));
  return std::min(num_blocks, std::max(share, 1 + retention.recent_blocks));
}

}  // namespace dculab
