// Shipped models, and the texts beside them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.hpp"
#include "kernels/number_format.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {

inline const std::filesystem::path kModels = std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models";
inline const std::filesystem::path kShippedModel = kModels / "dculab-tiny";

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The first `count` of a text that is longer.
inline std::vector<TokenId> shipped_tokens(const char* name, std::size_t count) {
  std::vector<TokenId> tokens = Tokenizer::load((kShippedModel / "tokenizer.json").string())
                                    .encode(text_of(kShippedModel / name), SpecialTokens::omit);
  REQUIRE(tokens.size() > count);
  tokens.resize(count);
  return tokens;
}

inline float rounded_to_f16(float value) { return kernels::f32_from_f16(kernels::f16_from_f32(value)); }

}  // namespace dculab::engine
