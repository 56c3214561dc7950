// Which drafter a configuration means, and what of it must fit beside the model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "core/batch.hpp"
#include "core/drafter.hpp"
#include "core/engine_options.hpp"
#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/mtp_checkpoint.hpp"
#include "engine/executors/open_executor.hpp"

namespace dculab::engine {

// A drafter, and how many tokens it can look back on.
struct DraftSource {
  std::unique_ptr<Drafter> drafter{};  // null without speculation
  int context = kLongestContext;
};

// The weights that draft: of one of these, or none.
struct DraftWeights {
  DraftWeights() = default;
  DraftWeights(std::optional<ModelWeights> draft_model) : model(std::move(draft_model)) {}

  std::optional<ModelWeights> model{};
  std::optional<MedusaWeights> medusa{};
  std::optional<MtpWeights> mtp{};
};

// Throws InputError where `draft` cannot guess for `target`: its vocabulary is another, or it cannot be run with these
// options. `options` are the target's.
void require_draft_of(const ModelShape& target, const ModelShape& draft, const EngineOptions& options);

// Throws InputError where both folders have a tokenizer and these have other tokens.
void require_same_tokens(const std::filesystem::path& target_folder, const std::filesystem::path& draft_folder);

// What the drafter takes besides its KV cache, as memory_besides_kv(). `options` are the target's.
[[nodiscard]] Bytes draft_memory_besides_kv(const OpenDevice& device, const ModelShape& target,
                                            const DraftWeights& draft, const EngineOptions& options);

// Of one block of the drafter's own KV cache; 0 without one.
[[nodiscard]] Bytes draft_block_bytes(const DraftWeights& draft, const EngineOptions& options);

// For `target`, which outlives it and is served with `options`. A draft model and an MTP layer have KV blocks of their
// own, as many as the target. Throws InputError where the method's weights are missing, or the device does not run it.
[[nodiscard]] DraftSource make_draft_source(const OpenDevice& device, const EngineOptions& options,
                                            ModelExecutor& target, DraftWeights draft);

}  // namespace dculab::engine
