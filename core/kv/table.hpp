// Every format and policy of the KV cache: what it is called, what it does to a sequence's tokens, and what it does not
// combine with. A new one adds its rows here, and files of its name in the kv/ folders of the floors that serve it:
// model/kv (what a step reads and writes), lower/kv (what kernels do for it), kernels/kv and
// kernels/{reference,cpu,gpu}/kv, engine/kv.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/kv/kivi.hpp"
#include "core/kv/retention.hpp"

namespace dculab {

// How K and V of a token are stored.
struct KvFormat {
  Dtype dtype;
  int tokens_together = 1;         // of a sequence, quantized together; above 1 its newest tokens are kept apart
  bool lies_in_rows = true;        // K, and V, of a token and head are a row of numbers of one type
  bool needs_calibration = false;  // it is made for what text has shown of a model's K and V
  int head_dim_multiple = 1;       // head_dim is a multiple of it
};

inline constexpr auto kKvFormats = std::to_array<KvFormat>({
    {Dtype::f32},
    {Dtype::f16},
    {Dtype::bf16},
    {Dtype::fp8_e4m3},
    {Dtype::fp8_e5m2},
    {Dtype::int8},
    {.dtype = Dtype::kivi4, .tokens_together = kKiviGroup, .lies_in_rows = false, .head_dim_multiple = kKiviGroup},
    {.dtype = Dtype::kivi2, .tokens_together = kKiviGroup, .lies_in_rows = false, .head_dim_multiple = kKiviGroup},
    {.dtype = Dtype::kvquant4, .lies_in_rows = false, .needs_calibration = true, .head_dim_multiple = 8},
    {.dtype = Dtype::kvquant3, .lies_in_rows = false, .needs_calibration = true, .head_dim_multiple = 8},
    {.dtype = Dtype::kvquant2, .lies_in_rows = false, .needs_calibration = true, .head_dim_multiple = 8},
});

// How a new token finds room in a sequence that has all its tokens.
enum class KvEviction : std::uint8_t { never, oldest_block, one_token };

// Which tokens a sequence keeps.
struct KvPolicy {
  RetentionPolicy policy;
  std::string_view name;  // as scenarios write it
  KvEviction eviction = KvEviction::never;
  bool moves_positions = false;    // tokens stand where they lie in the cache: a text may be longer than the model's
  bool has_window = false;         // window_tokens counts
  bool has_sinks = false;          // sink_tokens counts
  bool has_heavy_hitters = false;  // heavy_hitter_tokens counts
  // A decode loads kv_budget of what is cached, a prefill all of it. So tokens that were generated are computed once
  // more as they were at first, one in a step.
  bool has_budget = false;
};

inline constexpr auto kKvPolicies = std::to_array<KvPolicy>({
    {.policy = RetentionPolicy::all, .name = "all"},
    {.policy = RetentionPolicy::window, .name = "window", .eviction = KvEviction::oldest_block, .has_window = true},
    {.policy = RetentionPolicy::sinks,
     .name = "sinks",
     .eviction = KvEviction::oldest_block,
     .moves_positions = true,
     .has_window = true,
     .has_sinks = true},
    {.policy = RetentionPolicy::heavy_hitters,
     .name = "heavy_hitters",
     .eviction = KvEviction::one_token,
     .has_window = true,
     .has_heavy_hitters = true},
    {.policy = RetentionPolicy::critical_blocks, .name = "critical_blocks", .has_budget = true},
});

[[nodiscard]] constexpr bool is_kv_format(Dtype dtype) {
  return std::ranges::find(kKvFormats, dtype, &KvFormat::dtype) != kKvFormats.end();
}
// Throws std::invalid_argument for a dtype that no K and V are stored in.
[[nodiscard]] constexpr const KvFormat& kv_format(Dtype dtype) {
  if (!is_kv_format(dtype)) throw std::invalid_argument("no KV cache is stored in " + std::string(name(dtype)));
  return *std::ranges::find(kKvFormats, dtype, &KvFormat::dtype);
}
[[nodiscard]] constexpr bool quantizes_together(Dtype dtype) { return kv_format(dtype).tokens_together > 1; }
[[nodiscard]] constexpr bool lies_in_rows(Dtype dtype) { return kv_format(dtype).lies_in_rows; }
[[nodiscard]] constexpr const KvPolicy& kv_policy(RetentionPolicy policy) {
  return kKvPolicies[static_cast<std::size_t>(policy)];
}
[[nodiscard]] constexpr bool drops_tokens(RetentionPolicy policy) {
  return kv_policy(policy).eviction != KvEviction::never;
}
// A decode sees less than a prefill of the same tokens would.
[[nodiscard]] constexpr bool differs_in_decodes(RetentionPolicy policy) {
  return drops_tokens(policy) || kv_policy(policy).has_budget;
}

// As options write it: "heavy-hitters".
[[nodiscard]] std::string policy_text(RetentionPolicy policy);

// With the tokens kept, or the share loaded: "all", "window 256", "sinks 4 + 252", "heavy-hitters 128 + 128",
// "critical-blocks 25 %".
[[nodiscard]] std::string retention_text(const KvRetention& retention);

// "f32, f16, ...", in the table's order.
[[nodiscard]] std::string kv_format_names();

// A format as options name it, also in vLLM's words: "auto" is f16 (16 bits, as its activations), "fp8" fp8_e4m3, and
// "bfloat16" bf16. Any other word comes back as it is.
[[nodiscard]] std::string kv_format_word(const std::string& word);
inline constexpr std::string_view kKvAuto = "auto";
inline constexpr const char* kKvWordsHelp = "; vLLM's auto and fp8 too";

// Why K and V in heads of `head_dim` values cannot be stored in `dtype`; empty where they can.
[[nodiscard]] std::string head_dim_problem(Dtype dtype, int head_dim);

// What a format or a policy may not go with.
enum class KvFeature : std::uint8_t {
  // Of the options.
  prefix_caching,
  swap,
  speculation,
  whole_prompts,      // without enable_chunked_prefill
  each_other,         // the format and the policy
  duplicate_prompts,  // KvSkip
  groups_by_load,
  // Of a request, or of what serves it.
  samples,       // of one prompt, whose blocks they share
  handing_over,  // of blocks, between engines
  gpu,           // kernels of ours
  divided,       // among processes of ours, which have some of the heads each
  // Of the model.
  alibi,
  soft_cap,       // of attention's scores
  missing_kv,     // layers without K and V of their own
  unequal_heads,  // in the cache, or in a group of query heads
  sliding_window,
};

// Holds for a format and a policy that are named; where none is named, for any. In `text`, the reason that a user reads
// or its end, {dtype} and {policy} stand for their names; {model}, {cached} and {window} for what is known of a model.
struct KvClash {
  KvFeature feature;
  std::string_view text;
  std::uint32_t formats = 0;   // bit: a Dtype
  std::uint32_t policies = 0;  // bit: a RetentionPolicy

  [[nodiscard]] bool holds(const KvChoice& choice) const;
  [[nodiscard]] std::string text_for(const KvChoice& choice) const;
};

// In the order in which they are told.
[[nodiscard]] std::span<const KvClash> kv_clashes();

// Those of a choice with a feature.
[[nodiscard]] std::vector<std::string> clashes(const KvChoice& choice, KvFeature feature);

// Puts `value` where `word` stands in `text`.
void fill(std::string& text, std::string_view word, std::string_view value);

// The format and the policy go with it.
[[nodiscard]] bool combines(const KvChoice& choice, KvFeature feature);

}  // namespace dculab
