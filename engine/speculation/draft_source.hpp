// Which drafter a configuration means, and what of it must fit beside the model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/batch.hpp"
#include "core/drafter.hpp"
#include "core/engine_options.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/open_executor.hpp"

namespace dculab::engine {

// A drafter, and how many tokens it can look back on.
struct DraftSource {
  std::unique_ptr<Drafter> drafter{};  // null without speculation
  int context = kLongestContext;
};

// Throws InputError where `draft` cannot guess for `target`: its vocabulary is another, or it cannot be run with these
// options. `options` are the target's.
void require_draft_of(const ModelShape& target, const ModelShape& draft, const EngineOptions& options);

// Throws InputError where both folders have a tokenizer and these have other tokens.
void require_same_tokens(const std::filesystem::path& target_folder, const std::filesystem::path& draft_folder);

// Of one block of the draft model's KV cache; 0 without one.
[[nodiscard]] Bytes draft_block_bytes(const std::optional<ModelWeights>& draft, const EngineOptions& options);

// For `target`, which is served with `options`; `draft` where the method is draft_model. It has KV blocks of its own, as
// many as the target. Throws InputError for a method that the engine does not run.
[[nodiscard]] DraftSource make_draft_source(const OpenDevice& device, const EngineOptions& options,
                                            const ModelExecutor& target, std::optional<ModelWeights> draft);

}  // namespace dculab::engine
