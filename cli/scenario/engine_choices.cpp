#include "cli/scenario/engine_choices.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>

#include "cli/scenario/checks.hpp"
#include "core/activation_mode.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/exchange/rank_group.hpp"

namespace dculab::cli {

Dtype parse_dtype_option(const char* option, const std::string& text, const char* choices) {
  const auto dtype = parse_dtype(text);
  if (!dtype) throw InputError(std::string(option) + ": '" + text + "' is not a dtype; use " + choices);
  return *dtype;
}

Dtype parse_kv_dtype_option(const char* option, const std::string& text) {
  const auto dtype = parse_dtype(text);
  if (!dtype || !is_kv_format(*dtype))
    throw InputError(std::string(option) + ": '" + text + "' is no format of a KV cache; use one of " +
                     kv_format_names());
  return *dtype;
}

std::string kv_dtypes_help() {
  std::string anywhere, on_cpu;
  for (const KvFormat& format : kKvFormats) {
    std::string& names = combines({.dtype = format.dtype}, KvFeature::gpu) ? anywhere : on_cpu;
    names += (names.empty() ? "" : ", ") + std::string(name(format.dtype));
  }
  return anywhere + "; CPU: " + on_cpu;
}

ActivationMode parse_activations(const std::string& text) {
  if (const auto mode = parse_activation_mode(text)) {
    if (*mode == ActivationMode::fp8) throw InputError("fp8 activations are priced, not run; use exact, int8 or bf16");
    return *mode;
  }
  throw InputError("'" + text + "' is not a way to take activations; use exact, int8 or bf16");
}

PrefixEviction parse_prefix_eviction(const std::string& text, bool enable_prefix_caching) {
  if (text != "lru" && text != "lfu") throw InputError("'" + text + "' is not an order; use lru or lfu");
  if (text == "lfu" && !enable_prefix_caching)
    throw InputError("does nothing without a prefix cache; add --enable-prefix-caching");
  return text == "lfu" ? PrefixEviction::lfu : PrefixEviction::lru;
}

void add_skip_options(CLI::App& command, SkipChoices& choices) {
  command
      .add_option("--kv-cache-skip", choices.words,
                  "Tokens that are not written to the KV cache: padding of prompts, duplicate_prompts served together, "
                  "or all of them")
      ->option_text("padding,duplicate_prompts")
      ->delimiter(',');
  command.add_option("--pad-token-id", choices.pad_token_id, "With padding: the pad token, if not the model folder's")
      ->check(at_least(0));
}

KvSkip parse_skip(const SkipChoices& choices) {
  KvSkip skip;
  for (const std::string& word : choices.words)
    if (!add_word(skip, word))
      throw InputError("--kv-cache-skip", "'" + word + "' cannot be skipped; use " + kKvSkipWords);
  if (choices.pad_token_id && !skip.padding)
    throw InputError("--pad-token-id", "does nothing without --kv-cache-skip padding");
  skip.pad_token_id = choices.pad_token_id;
  return skip;
}

RetentionPolicy parse_policy(const std::string& text) {
  if (const auto policy = parse_retention_policy(text)) return *policy;
  throw InputError("'" + text + "' is not a policy; use all, window, sinks, heavy-hitters or critical-blocks");
}

std::string policy_text(RetentionPolicy policy) {
  std::string text(name(policy));
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string retention_text(const KvRetention& retention) {
  const KvPolicy& policy = kv_policy(retention.policy);
  std::string text = policy_text(retention.policy);
  if (policy.has_sinks) text += " " + std::to_string(retention.sink_tokens) + " +";
  if (policy.has_heavy_hitters) text += " " + std::to_string(retention.heavy_hitter_tokens) + " +";
  if (policy.has_window) text += " " + std::to_string(retention.window_tokens);
  if (!policy.has_budget) return text;
  std::ostringstream share;
  share << " " << 100 * retention.kv_budget << " %";
  return text + share.str();
}

void add_budget_options(CLI::App& command, KvRetention& retention) {
  command.add_option("--kv-budget", retention.kv_budget, "critical-blocks: share of the blocks that a decode loads")
      ->check(between(0, 1));
  command.add_option("--recent-blocks", retention.recent_blocks, "critical-blocks: of them the last, always")
      ->check(at_least(1));
}

void add_division_options(CLI::App& command, engine::Division& division) {
  command
      .add_option("--tensor-parallel-size", division.tensor_parallel_size,
                  "CPU: processes that share every layer, and the threads")
      ->check(between(1, engine::kMostRanks));
  command.add_flag_callback(
      "--enable-expert-parallel", [&division] { division.experts = engine::ExpertDivision::by_expert; },
      "With --tensor-parallel-size: each process has some routed experts whole");
}

}  // namespace dculab::cli
