// What the user may choose about the engine's cache and arithmetic, from words to EngineOptions; and the processes that
// share a model, with vLLM's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "engine/parallel/division.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// "f16"; a refusal names `option` and lists `choices`.
[[nodiscard]] Dtype parse_dtype_option(const char* option, const std::string& text, const char* choices);

// Of a KV cache.
[[nodiscard]] Dtype parse_kv_dtype_option(const char* option, const std::string& text);
// "f16, ...; CPU: f32, ...": what the engine runs.
[[nodiscard]] std::string kv_dtypes_help();

// `--activations`: "exact", "int8" or "bf16". Throws InputError.
inline constexpr const char* kActivationsHelp =
    "exact; int8 for 8-bit activations and integer sums with quantized weights; bf16 for BF16 activations and the "
    "CPU's "
    "BF16 dot product with BF16 weights";
[[nodiscard]] ActivationMode parse_activations(const std::string& text);

// Of `--prefix-eviction`: "lru" or "lfu", with `--enable-prefix-caching`. Throws InputError.
inline constexpr const char* kPrefixEvictionHelp =
    "Prefix caching: free blocks to evict first: lru, the least recently used; lfu, the least frequently used, with "
    "aging";
[[nodiscard]] PrefixEviction parse_prefix_eviction(const std::string& text, bool enable_prefix_caching);

// --kv-cache-skip and --pad-token-id.
struct SkipChoices {
  std::vector<std::string> words;
  std::optional<int> pad_token_id;
};
void add_skip_options(CLI::App& command, SkipChoices& choices);
// Throws InputError.
[[nodiscard]] KvSkip parse_skip(const SkipChoices& choices);

// --tensor-parallel-size and --enable-expert-parallel.
void add_division_options(CLI::App& command, engine::Division& division);

}  // namespace dculab::cli
