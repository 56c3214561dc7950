// The small tokenizers of tests/golden/tokenizer, by kind: "gpt2", "llama3", "qwen2".
#pragma once

#include <string>

#include "engine/checkpoint/json.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace dculab::engine {

inline const std::string kGoldens = std::string(DCULAB_SOURCE_DIR) + "/tests/golden/tokenizer/";

inline Tokenizer fixture(const std::string& kind) { return Tokenizer::load(kGoldens + kind + ".json"); }

inline nlohmann::json fixture_json(const std::string& kind) {
  const std::string path = kGoldens + kind + ".json";
  return parse_json(read_text(path), path);
}

}  // namespace dculab::engine
