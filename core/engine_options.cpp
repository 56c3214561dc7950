#include "core/engine_options.hpp"

#include <algorithm>
#include <bit>

#include "core/allowed_numbers.hpp"
#include "core/block_pool.hpp"
#include "core/kv/figures.hpp"

namespace dculab {
namespace {

using Found = std::vector<std::string>;

// Figures of other policies may stand there: a sweep over policies has them all.
void check_figures(const KvRetention& retention, Found& found) {
  const KvPolicy& policy = kv_policy(retention.policy);
  const std::string needs = "kv_retention " + std::string(policy.name) + " needs ";
  for (const KvFigure& figure : kKvFigures) {
    if (!(policy.*figure.counts)) continue;
    const std::string name(figure.name);
    if (figure.share != nullptr && !(retention.*figure.share > 0 && retention.*figure.share <= 1))
      found.push_back(needs + "a " + name + " above 0 and at most 1");
    if (figure.count != nullptr && (retention.*figure.count < 1 || retention.*figure.count > kLongestContext))
      found.push_back(needs + name + ", at least 1 and at most " + std::to_string(kLongestContext));
  }
}

void check_groups(const EngineOptions& options, Found& found) {
  for (std::string& text : problems(*options.groups_by_load)) found.push_back(std::move(text));
  const auto refuse = [&found](bool wrong, const std::string& other, const std::string& reason) {
    if (wrong) found.push_back("groups_by_load cannot be combined with " + other + ": " + reason);
  };
  const std::string many = "blocks of many heads hold nothing that few can read";
  refuse(options.enable_prefix_caching, "enable_prefix_caching", many);
  refuse(options.kv_skip.duplicate_prompts, "kv_cache_skip duplicate_prompts", many);
  refuse(options.speculative_config.enabled(), "speculative_config", "drafts follow one model");
}

[[nodiscard]] bool has(const EngineOptions& options, KvFeature feature) {
  switch (feature) {
    case KvFeature::prefix_caching:
      return options.enable_prefix_caching;
    case KvFeature::swap:
      return options.preemption_mode == PreemptionMode::swap;
    case KvFeature::speculation:
      return options.speculative_config.enabled();
    case KvFeature::whole_prompts:
      return !options.enable_chunked_prefill;
    case KvFeature::each_other:
      return true;
    case KvFeature::groups_by_load:
      return options.groups_by_load.has_value();
    case KvFeature::duplicate_prompts:
      return options.kv_skip.duplicate_prompts;
    default:
      return false;
  }
}

void check_combinations(const EngineOptions& options, Found& found) {
  for (const KvClash& clash : kv_clashes())
    if (has(options, clash.feature) && clash.holds(options.kv())) found.push_back(clash.text_for(options.kv()));
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
  if (!is_kv_format(options.kv_cache_dtype))
    return {"kv_cache_dtype " + std::string(name(options.kv_cache_dtype)) + " is no format of a KV cache; use one of " +
            kv_format_names()};
  const int block_size = options.block_size;
  refuse(block_size < 1 || block_size > 256 || !std::has_single_bit(static_cast<unsigned>(block_size)),
         "block_size must be a power of two from 1 to 256, not " + std::to_string(block_size) + "; use " +
             powers_of_two(1, 256));
  const int residual = options.kv_residual_tokens;
  refuse(quantizes_together(options.kv_cache_dtype) && (residual < 32 || residual > 128 || residual % 32 != 0),
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
  if (options.groups_by_load) check_groups(options, found);
  check_figures(options.kv_retention, found);
  check_combinations(options, found);
  for (std::string& text : problems(options.speculative_config)) found.push_back(std::move(text));
  return found;
}

}  // namespace dculab
