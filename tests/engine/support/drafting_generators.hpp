// Generators of the shipped models that draft.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/evaluate/speculation_check.hpp"
#include "engine/generate/generator.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/shipped_text.hpp"

namespace dculab::engine {

inline const std::filesystem::path kTarget = kModels / "dculab-tiny", kDraft = kModels / "dculab-tiny-draft";
inline const std::filesystem::path kMedusaHeads = kTarget / "medusa";
inline const std::filesystem::path kSmall = kGoldenFolder / "text";

inline GeneratorOptions engine_options(Dtype kv = Dtype::f32, int block_size = 16) {
  GeneratorOptions options;
  options.engine.kv_cache_dtype = kv;
  options.engine.block_size = block_size;
  options.num_threads = 2;
  return options;
}

inline SpeculativeConfig drafting(SpeculativeMethod method, DraftShape shape) {
  return {.method = method, .shape = std::move(shape)};
}

inline GeneratorOptions with_draft(GeneratorOptions options, const std::filesystem::path& draft, DraftShape shape) {
  options.engine.speculative_config = drafting(SpeculativeMethod::draft_model, std::move(shape));
  options.speculative_model = draft;
  return options;
}

inline GeneratorOptions with_medusa(GeneratorOptions options, DraftShape shape) {
  options.engine.speculative_config = drafting(SpeculativeMethod::medusa, std::move(shape));
  options.speculative_model = kMedusaHeads;
  return options;
}

inline std::vector<TextRequest> requests_of(const std::vector<std::string>& prompts, int max_tokens) {
  std::vector<TextRequest> requests;
  for (std::size_t index = 0; index < prompts.size(); ++index)
    requests.push_back({.prompt = prompts[index], .max_tokens = max_tokens + static_cast<int>(index % 7)});
  return requests;
}

// Prompts of about `bytes` bytes, from all over the shipped model's stories. Some begin alike.
inline std::vector<TextRequest> story_requests(int count, int max_tokens, std::size_t bytes = 150) {
  std::vector<std::string> prompts = prompts_from(text_of(kTarget / "calibration.txt"), count, bytes);
  for (std::size_t index = 1; index < prompts.size(); index += 5)
    prompts[index] = prompts[index - 1] + prompts[index].substr(0, 20);
  return requests_of(prompts, max_tokens);
}

inline std::vector<std::vector<TokenId>> tokens_of(const Generation& generation) {
  std::vector<std::vector<TokenId>> tokens;
  for (const Completion& completion : generation.completions) tokens.push_back(completion.token_ids);
  return tokens;
}

}  // namespace dculab::engine
