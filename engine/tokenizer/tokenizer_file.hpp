// What a Hugging Face tokenizer.json says, as far as byte-level byte-pair encoding (GPT-2, Llama-3, Qwen2) needs it.
//
// Format: the `tokenizers` library's own, version "1.0". "truncation" and "padding" are requests to batch training
// code and are not followed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "engine/tokenizer/added_tokens.hpp"
#include "engine/tokenizer/bpe.hpp"
#include "engine/tokenizer/normalizer.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"

namespace dculab::engine {

struct TokenizerFile {
  BpeModel model;
  std::vector<AddedToken> added_tokens;
  Normalization normalization = Normalization::none;
  PreTokenizerRules pre_tokenizer;
  std::vector<TokenId> prefix;  // special tokens put before a text: BOS
  std::vector<TokenId> suffix;  // and behind it: EOS
};

// `json` is the content of the file called `file`. Throws InputError with the file, and the line when it is no JSON.
[[nodiscard]] TokenizerFile read_tokenizer_file(std::string_view json, const std::string& file);

}  // namespace dculab::engine
