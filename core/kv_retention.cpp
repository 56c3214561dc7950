#include "core/kv_retention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace dculab {

std::string_view name(RetentionPolicy policy) {
  switch (policy) {
    case RetentionPolicy::all:
      return "all";
    case RetentionPolicy::window:
      return "window";
    case RetentionPolicy::sinks:
      return "sinks";
    case RetentionPolicy::heavy_hitters:
      return "heavy_hitters";
  }
  return "?";
}

std::optional<RetentionPolicy> parse_retention_policy(std::string_view text) {
  std::string word(text);
  std::ranges::replace(word, '-', '_');
  for (const RetentionPolicy policy :
       {RetentionPolicy::all, RetentionPolicy::window, RetentionPolicy::sinks, RetentionPolicy::heavy_hitters})
    if (word == name(policy)) return policy;
  return std::nullopt;
}

std::int64_t KvDemand::of_other_layers(std::int64_t tokens) const {
  const std::int64_t within = window > 0 ? std::min<std::int64_t>(tokens, window) : tokens;
  const double more = state_tokens + beyond * static_cast<double>(tokens - within);
  return within + static_cast<std::int64_t>(std::ceil(more));
}

std::int64_t kv_capacity(const KvRetention& retention, int block_size) {
  const std::int64_t window = retention.window_tokens;
  switch (retention.policy) {
    case RetentionPolicy::all:
      break;
    case RetentionPolicy::window:
      return window + block_size - 1;
    case RetentionPolicy::sinks:
      return retention.sink_tokens + window + block_size - 1;
    case RetentionPolicy::heavy_hitters:
      return retention.heavy_hitter_tokens + window;
  }
  return std::numeric_limits<std::int64_t>::max();
}

int kv_eviction_unit(const KvRetention& retention, int block_size) {
  return retention.policy == RetentionPolicy::heavy_hitters ? 1 : block_size;
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

}  // namespace dculab
