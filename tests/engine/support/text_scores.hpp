// Texts, and how likely a model finds them, token by token, when it is served with given options.
#pragma once

#include <span>
#include <vector>

#include "core/engine_options.hpp"
#include "engine/executors/model_executor.hpp"

namespace dculab::engine {

using TextScores = std::vector<std::vector<double>>;  // of each text, of each token after its prompt

// Below 96; the same for a seed.
[[nodiscard]] std::vector<TokenId> random_text(int count, unsigned seed = 1);

// Precondition: as many of both.
[[nodiscard]] double largest_difference(std::span<const double> a, std::span<const double> b);

// For each text the natural logarithms of p(token i | tokens 0 .. i - 1), i from `num_prompt_tokens` on:
// [tokens - num_prompt_tokens]. Scheduler and executor do what they do for generated text, only that the next token is
// the text's own, so whatever the options change (kv_cache_dtype, kv_retention, quantized weights) changes these
// figures as it changes what users get. The prompt is computed in chunks, the rest a token a step, all texts together.
// Throws InputError when a text cannot be served. Preconditions: num_prompt_tokens >= 1, each text is longer than that.
[[nodiscard]] TextScores token_log_probabilities(ModelExecutor& executor, const EngineOptions& options,
                                                 std::span<const std::vector<TokenId>> texts,
                                                 int num_prompt_tokens = 1);

}  // namespace dculab::engine
