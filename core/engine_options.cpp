#include "core/engine_options.hpp"

#include <algorithm>
#include <bit>

#include "core/block_pool.hpp"
#include "core/kivi.hpp"

namespace dculab {
namespace {

using Found = std::vector<std::string>;

// Figures of other policies may stand there: a sweep over policies has them all.
void check_figures(const KvRetention& retention, Found& found) {
  const std::string policy = "kv_retention " + std::string(name(retention.policy));
  const auto need = [&](bool needed, const char* figure, int value) {
    if (needed && (value < 1 || value > kLongestContext))
      found.push_back(policy + " needs " + figure + ", at least 1 and at most " + std::to_string(kLongestContext));
  };
  need(retention.policy != RetentionPolicy::all, "window_tokens", retention.window_tokens);
  need(retention.policy == RetentionPolicy::sinks, "sink_tokens", retention.sink_tokens);
  need(retention.policy == RetentionPolicy::heavy_hitters, "heavy_hitter_tokens", retention.heavy_hitter_tokens);
}

void check_combinations(const EngineOptions& options, Found& found) {
  const RetentionPolicy policy = options.kv_retention.policy;
  const std::string kept = "kv_retention " + std::string(name(policy));
  const Dtype dtype = options.kv_cache_dtype;
  if (options.enable_prefix_caching && is_kivi(dtype))
    found.push_back("enable_prefix_caching cannot share blocks of kv_cache_dtype " + std::string(name(dtype)) +
                    ": a block's newest tokens are kept apart, per sequence");
  if (options.preemption_mode == PreemptionMode::swap && is_kivi(dtype))
    found.push_back("preemption_mode swap cannot move blocks of kv_cache_dtype " + std::string(name(dtype)) +
                    ": a block's newest tokens are kept apart, per sequence");
  const bool speculates = options.speculative_config.enabled();
  if (speculates && is_kivi(dtype))
    found.push_back("speculative_config cannot be combined with kv_cache_dtype " + std::string(name(dtype)) +
                    ": a block's newest tokens are quantized together, and rejected ones could not be taken back");
  if (policy == RetentionPolicy::all) return;
  if (speculates)
    found.push_back(kept + " cannot be combined with speculative_config: what a rejected token drove out is gone");
  if (options.preemption_mode == PreemptionMode::swap)
    found.push_back(kept +
                    " cannot be combined with preemption_mode swap: what it keeps beside the blocks is not moved");
  if (options.enable_prefix_caching)
    found.push_back(kept + " cannot be combined with enable_prefix_caching: what it leaves of a block is no prefix");
  if (!options.enable_chunked_prefill)
    found.push_back(kept + " needs enable_chunked_prefill: a prompt may be longer than what is kept");
  if (is_kivi(dtype))
    found.push_back(kept + " cannot be combined with kv_cache_dtype " + std::string(name(dtype)) +
                    ", whose tokens are not written one by one");
}

}  // namespace

int num_host_blocks(const EngineOptions& options, Bytes block_bytes) {
  if (options.preemption_mode != PreemptionMode::swap) return 0;
  return static_cast<int>(std::min<double>(options.swap_space / block_bytes, kMostBlocks));
}

std::vector<std::string> problems(const EngineOptions& options) {
  std::vector<std::string> found;
  const auto refuse = [&found](bool wrong, std::string text) {
    if (wrong) found.push_back(std::move(text));
  };
  const int block_size = options.block_size;
  refuse(block_size < 1 || block_size > 256 || !std::has_single_bit(static_cast<unsigned>(block_size)),
         "block_size must be a power of two from 1 to 256, not " + std::to_string(block_size));
  const int residual = options.kv_residual_tokens;
  refuse(is_kivi(options.kv_cache_dtype) && (residual < 32 || residual > 128 || residual % 32 != 0),
         "kv_residual_tokens must be 32, 64, 96 or 128, not " + std::to_string(residual));
  refuse(options.max_num_seqs < 1 || options.max_num_seqs > kLargestBatch,
         "max_num_seqs must be at least 1 and at most " + std::to_string(kLargestBatch));
  refuse(options.max_num_batched_tokens < 1 || options.max_num_batched_tokens > kLongestContext,
         "max_num_batched_tokens must be at least 1 and at most " + std::to_string(kLongestContext));
  refuse(!(options.gpu_memory_utilization > 0 && options.gpu_memory_utilization <= 1),
         "gpu_memory_utilization must lie in (0, 1]");
  refuse(!(options.swap_space >= Bytes() && options.swap_space <= kLargestSwapSpace),
         "swap_space must be at least 0 and at most 1024 TiB");
  refuse(options.preemption_mode == PreemptionMode::swap && options.swap_space == Bytes(),
         "preemption_mode swap needs a swap_space, or nothing is swapped");
  refuse(options.attention_split.partition_tokens < 0 || options.attention_split.partition_tokens > kLongestContext,
         "partition_tokens must be at least 0 and at most " + std::to_string(kLongestContext));
  refuse(options.attention_split.query_heads_per_workgroup < 0, "query_heads_per_workgroup must not be negative");
  check_figures(options.kv_retention, found);
  check_combinations(options, found);
  for (std::string& text : problems(options.speculative_config)) found.push_back(std::move(text));
  return found;
}

}  // namespace dculab
