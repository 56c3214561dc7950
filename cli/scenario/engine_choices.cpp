#include "cli/scenario/engine_choices.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

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
  const auto dtype = parse_dtype(kv_format_word(text));
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
  return anywhere + "; CPU: " + on_cpu + kKvWordsHelp;
}

ActivationMode parse_activations(const std::string& text) {
  if (const auto mode = parse_activation_mode(text)) {
    if (*mode == ActivationMode::fp8)
      throw InputError("fp8 activations are predicted, not run; use exact, int8 or bf16");
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
  if (choices.words.size() > 1 && std::ranges::find(choices.words, "none") != choices.words.end())
    throw InputError("--kv-cache-skip", "'none' stands alone; leave it out, or the other words");
  if (choices.pad_token_id && !skip.padding)
    throw InputError("--pad-token-id", "does nothing without --kv-cache-skip padding");
  skip.pad_token_id = choices.pad_token_id;
  return skip;
}

void add_division_options(CLI::App& command, engine::Division& division) {
  command
      .add_option("--tensor-parallel-size", division.tensor_parallel_size,
                  "CPU: processes that share every layer and the threads")
      ->check(between(1, engine::kMostRanks));
  command.add_flag_callback(
      "--enable-expert-parallel", [&division] { division.experts = engine::ExpertDivision::by_expert; },
      "With --tensor-parallel-size: each process holds whole routed experts");
}

}  // namespace dculab::cli
