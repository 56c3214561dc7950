// Generators of the shipped models that draft.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "engine/generate/generator.hpp"
#include "tests/engine/support/golden_model.hpp"

namespace dculab::engine {

inline const std::filesystem::path kModels = std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models";
inline const std::filesystem::path kTarget = kModels / "dculab-tiny", kDraft = kModels / "dculab-tiny-draft";
inline const std::filesystem::path kSmall = kGoldenFolder / "text";

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

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

}  // namespace dculab::engine
