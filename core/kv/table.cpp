#include "core/kv/table.hpp"

#include <algorithm>
#include <sstream>

#include "core/letter_case.hpp"

namespace dculab {
namespace {

[[nodiscard]] constexpr std::uint32_t bit(Dtype dtype) { return 1U << static_cast<unsigned>(dtype); }
[[nodiscard]] constexpr std::uint32_t bit(RetentionPolicy policy) { return 1U << static_cast<unsigned>(policy); }

[[nodiscard]] constexpr std::uint32_t grouped_formats() {
  std::uint32_t bits = 0;
  for (const KvFormat& format : kKvFormats)
    if (format.tokens_together > 1) bits |= bit(format.dtype);
  return bits;
}

[[nodiscard]] constexpr std::uint32_t dropping_policies() {
  std::uint32_t bits = 0;
  for (const KvPolicy& policy : kKvPolicies)
    if (policy.eviction != KvEviction::never) bits |= bit(policy.policy);
  return bits;
}

constexpr std::uint32_t kGrouped = grouped_formats(), kDropping = dropping_policies();
constexpr std::uint32_t kCritical = bit(RetentionPolicy::critical_blocks);
constexpr std::uint32_t kKvQuant = bit(Dtype::kvquant4) | bit(Dtype::kvquant3) | bit(Dtype::kvquant2);
constexpr std::uint32_t kSinks = bit(RetentionPolicy::sinks), kHeavyHitters = bit(RetentionPolicy::heavy_hitters);

constexpr KvClash kClashes[] = {
    {KvFeature::prefix_caching,
     "enable_prefix_caching cannot share blocks of kv_cache_dtype {dtype}: a block's newest tokens are kept apart, per "
     "sequence",
     kGrouped},
    {KvFeature::swap,
     "preemption_mode swap cannot move blocks of kv_cache_dtype {dtype}: a block's newest tokens are kept apart, per "
     "sequence",
     kGrouped},
    {KvFeature::speculation,
     "speculative_config cannot be combined with kv_cache_dtype {dtype}: a block's newest tokens are quantized "
     "together, and rejected ones could not be taken back",
     kGrouped},
    {KvFeature::speculation,
     "speculative_config cannot be combined with kv_cache_dtype {dtype}: keys are rotated by their place in the cache "
     "when they are read, and guesses share positions",
     kKvQuant},
    {KvFeature::speculation,
     "kv_retention {policy} cannot be combined with speculative_config: what a rejected token drove out is gone", 0,
     kDropping},
    {KvFeature::speculation,
     "kv_retention {policy} cannot be combined with speculative_config: each of several new tokens would choose other "
     "blocks",
     0, kCritical},
    {KvFeature::swap,
     "kv_retention {policy} cannot be combined with preemption_mode swap: what it keeps beside the blocks is not moved",
     0, kDropping},
    {KvFeature::prefix_caching,
     "kv_retention {policy} cannot be combined with enable_prefix_caching: what it leaves of a block is no prefix", 0,
     kDropping},
    {KvFeature::whole_prompts,
     "kv_retention {policy} needs enable_chunked_prefill: a prompt may be longer than what is kept", 0, kDropping},
    {KvFeature::each_other,
     "kv_retention {policy} cannot be combined with kv_cache_dtype {dtype}, whose tokens are not written one by one",
     kGrouped, kDropping | kCritical},
    {KvFeature::groups_by_load,
     "groups_by_load cannot share blocks of kv_cache_dtype {dtype}: a block's newest tokens are kept apart, per "
     "sequence",
     kGrouped},
    {KvFeature::groups_by_load,
     "kv_retention {policy} cannot be combined with groups_by_load: what is kept counts blocks of one size", 0,
     kDropping},
    {KvFeature::duplicate_prompts,
     "kv_cache_skip duplicate_prompts cannot share blocks of kv_cache_dtype {dtype}: a block's newest tokens are kept "
     "apart, per sequence",
     kGrouped},
    {KvFeature::duplicate_prompts,
     "kv_retention {policy} cannot be combined with kv_cache_skip duplicate_prompts: what it leaves of a block is no "
     "prompt",
     0, kDropping},
    {KvFeature::groups_by_load,
     "kv_retention {policy} cannot be combined with groups_by_load: bounds of keys lie beside blocks of one size", 0,
     kCritical},
    {KvFeature::duplicate_prompts,
     "kv_retention {policy} cannot be combined with kv_cache_skip duplicate_prompts: bounds of a block that was shared "
     "would be those of another text's keys too",
     0, kCritical},
    {KvFeature::each_other,
     "kv_retention {policy} cannot be combined with kv_cache_dtype {dtype}, whose keys are rotated by their place in "
     "the cache when they are read",
     kKvQuant, kDropping | kCritical},
    {KvFeature::groups_by_load,
     "groups_by_load cannot share blocks of kv_cache_dtype {dtype}, which is calibrated for the model's own heads",
     kKvQuant},
    {KvFeature::samples,
     "samples of a prompt share its KV blocks, which kv_retention {policy} changes for each; ask for one", 0,
     kDropping},
    {KvFeature::samples,
     "samples of a prompt share its KV blocks, and of kv_cache_dtype {dtype} a block's newest tokens are kept apart, "
     "per sequence; ask for one",
     kGrouped},
    {KvFeature::handing_over, "kv_retention {policy} does not keep a whole KV cache", 0, kDropping},
    {KvFeature::handing_over, "kv_cache_dtype {dtype} is not one format", kGrouped},
    {KvFeature::handing_over, "kv_retention {policy} keeps bounds of keys beside its blocks, which are not handed over",
     0, kCritical},
    {KvFeature::gpu,
     "kv_cache_dtype {dtype} is not supported on the GPU; use f16, bf16, fp8_e4m3, fp8_e5m2, int8, kivi4 or kivi2",
     bit(Dtype::f32) | kKvQuant},
    {KvFeature::gpu,
     "kv_retention {policy} takes no kv_cache_dtype {dtype} on a GPU; use f16, bf16, fp8_e4m3 or fp8_e5m2",
     bit(Dtype::int8), kCritical},
    {KvFeature::divided,
     "kv_retention {policy} looks at the scores of all query heads, and processes have some each; use another, or "
     "tensor_parallel_size 1",
     0, kHeavyHitters},
    {KvFeature::divided,
     "kv_cache_dtype {dtype} looks at K and V of all heads, and processes have some each; use another, or "
     "tensor_parallel_size 1",
     kKvQuant},
    {KvFeature::alibi,
     "kv_retention {policy} cannot serve {model}: ALiBi needs the keys in the order of their positions", 0,
     kHeavyHitters},
    {KvFeature::alibi, "kv_retention {policy} cannot serve {model}: ALiBi needs positions, and chosen blocks have none",
     0, kCritical},
    {KvFeature::soft_cap,
     "kv_retention {policy} cannot serve {model}: its attention has a soft cap, which sums of scores leave out", 0,
     kHeavyHitters},
    {KvFeature::missing_kv, "kv_retention {policy} cannot serve {model}: it needs K and V in every layer, and {cached}",
     0, kDropping | kCritical},
    {KvFeature::missing_kv, "a KV cache of {dtype} cannot serve {model}: it needs K and V in every layer, and {cached}",
     kGrouped | kKvQuant},
    {KvFeature::unequal_heads,
     "kv_retention {policy} cannot serve {model}: it needs equal heads and groups in all layers", 0,
     kDropping | kCritical},
    {KvFeature::unequal_heads,
     "a KV cache of {dtype} cannot serve {model}: it needs equal heads and groups in all layers", kGrouped},
    {KvFeature::sliding_window,
     "kv_retention {policy} cannot serve {model}: its sliding window of {window} tokens would hide what is kept; use "
     "window",
     0, kSinks | kHeavyHitters},
    {KvFeature::sliding_window,
     "kv_retention {policy} cannot serve {model}: its sliding window of {window} tokens needs positions, and chosen "
     "blocks have none",
     0, kCritical},
};

}  // namespace

std::string policy_text(RetentionPolicy policy) {
  std::string text(name(policy));
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string retention_text(const KvRetention& retention) {
  const KvPolicy& policy = kv_policy(retention.policy);
  std::string text = policy_text(retention.policy);
  if (policy.has_sinks) text.append(" ").append(std::to_string(retention.sink_tokens)).append(" +");
  if (policy.has_heavy_hitters) text.append(" ").append(std::to_string(retention.heavy_hitter_tokens)).append(" +");
  if (policy.has_window) text.append(" ").append(std::to_string(retention.window_tokens));
  if (!policy.has_budget) return text;
  std::ostringstream share;
  share << " " << 100 * retention.kv_budget << " %";
  return text + share.str();
}

std::string kv_format_names() {
  std::string names;
  for (const KvFormat& format : kKvFormats) names += (names.empty() ? "" : ", ") + std::string(name(format.dtype));
  return names;
}

std::string kv_format_word(const std::string& word) {
  if (lower_case(word) == kKvAuto) return std::string(name(Dtype::f16));
  if (const auto dtype = parse_dtype(word)) return std::string(name(*dtype));
  return word;
}

std::string head_dim_problem(Dtype dtype, int head_dim) {
  const int multiple = kv_format(dtype).head_dim_multiple;
  if (head_dim % multiple == 0) return {};
  return "kv_cache_dtype " + std::string(name(dtype)) + " needs a head_dim that is a multiple of " +
         std::to_string(multiple) + ", not " + std::to_string(head_dim) + "; use int8 or fp8_e4m3";
}

std::span<const KvClash> kv_clashes() { return kClashes; }

void fill(std::string& text, std::string_view word, std::string_view value) {
  if (const std::size_t place = text.find(word); place != std::string::npos) text.replace(place, word.size(), value);
}

bool KvClash::holds(const KvChoice& choice) const {
  const bool of_format = formats == 0 || (formats & bit(choice.dtype)) != 0;
  const bool of_policy = policies == 0 || (policies & bit(choice.policy)) != 0;
  return of_format && of_policy;
}

std::string KvClash::text_for(const KvChoice& choice) const {
  std::string filled(text);
  fill(filled, "{dtype}", name(choice.dtype));
  fill(filled, "{policy}", name(choice.policy));
  return filled;
}

std::vector<std::string> clashes(const KvChoice& choice, KvFeature feature) {
  std::vector<std::string> found;
  for (const KvClash& clash : kClashes)
    if (clash.feature == feature && clash.holds(choice)) found.push_back(clash.text_for(choice));
  return found;
}

bool combines(const KvChoice& choice, KvFeature feature) {
  return std::ranges::none_of(kClashes,
                              [&](const KvClash& clash) { return clash.feature == feature && clash.holds(choice); });
}

}  // namespace dculab
