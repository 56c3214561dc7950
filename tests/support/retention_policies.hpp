// Policies of the KV cache, as tests name them.
#pragma once

#include "core/kv/retention.hpp"

namespace dculab {

[[nodiscard]] constexpr KvRetention window_of(int tokens) {
  return {.policy = RetentionPolicy::window, .window_tokens = tokens};
}
[[nodiscard]] constexpr KvRetention sinks_of(int sinks, int window) {
  return {.policy = RetentionPolicy::sinks, .sink_tokens = sinks, .window_tokens = window};
}
[[nodiscard]] constexpr KvRetention hitters_of(int hitters, int window) {
  return {.policy = RetentionPolicy::heavy_hitters, .window_tokens = window, .heavy_hitter_tokens = hitters};
}
[[nodiscard]] constexpr KvRetention critical(double budget, int recent_blocks = 1) {
  return {.policy = RetentionPolicy::critical_blocks, .kv_budget = budget, .recent_blocks = recent_blocks};
}

}  // namespace dculab
