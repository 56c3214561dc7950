#include "study/evaluate/kv_bytes.hpp"

#include <algorithm>
#include <cmath>

#include "core/kv/kivi.hpp"
#include "core/kv/table.hpp"
#include "model/kv/kv_bytes.hpp"

namespace dculab::study {

Bytes kv_bytes_per_sequence(const ModelShape& model, const EngineOptions& options, int context) {
  const std::int64_t kept = std::min<std::int64_t>(context, kv_capacity(options.kv_retention, options.block_size));
  const auto tokens = static_cast<int>(kept);
  const Bytes of_token = kv_bytes_per_token(model, options.kv_cache_dtype);
  if (quantizes_together(options.kv_cache_dtype)) {
    const int quantized = kivi_quantized_tokens(tokens, options.kv_residual_tokens);
    return quantized * of_token + (tokens - quantized) * kv_bytes_per_token(model, Dtype::f16);
  }
  const int blocks = (context + options.block_size - 1) / options.block_size;
  return tokens * of_token + blocks * kv_bytes_beside_block(model, options.kv_retention.policy);
}

Bytes kv_bytes_loaded(const ModelShape& model, const EngineOptions& options, int context) {
  const Bytes kept = kv_bytes_per_sequence(model, options, context);
  if (!kv_policy(options.kv_retention.policy).has_budget) return kept;
  const int left_out = context - kv_tokens_loaded(options.kv_retention, options.block_size, context);
  return kept - left_out * kv_bytes_per_token(model, options.kv_cache_dtype);
}

void share_budget(EngineOptions& options, const ModelShape& model, int context) {
  KvRetention& retention = options.kv_retention;
  const KvPolicy& policy = kv_policy(retention.policy);
  if (!policy.has_window || retention.window_tokens > 0 || retention.kv_budget <= 0) return;
  EngineOptions critical = options;
  critical.kv_retention.policy = RetentionPolicy::critical_blocks;
  const Bytes loaded = kv_bytes_loaded(model, critical, context);
  const int tokens = static_cast<int>(std::ceil(loaded / kv_bytes_per_token(model, options.kv_cache_dtype)));
  if (policy.has_heavy_hitters && retention.heavy_hitter_tokens == 0) retention.heavy_hitter_tokens = tokens / 2;
  const int others =
      (policy.has_heavy_hitters ? retention.heavy_hitter_tokens : 0) + (policy.has_sinks ? retention.sink_tokens : 0);
  retention.window_tokens = std::max(1, tokens - others);
}

}  // namespace dculab::study
