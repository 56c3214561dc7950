// What a generator has written.
#pragma once

#include <vector>

#include "engine/generate/generator.hpp"

namespace dculab::engine {

inline std::vector<std::vector<TokenId>> texts_of(const Generation& generation) {
  std::vector<std::vector<TokenId>> texts;
  for (const Completion& completion : generation.completions) texts.push_back(completion.token_ids);
  return texts;
}

}  // namespace dculab::engine
