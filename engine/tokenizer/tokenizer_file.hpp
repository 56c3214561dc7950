// What a Hugging Face tokenizer.json says, as far as byte-pair encoding needs it: over bytes (GPT-2, Llama-3, Qwen2,
// BLOOM, Falcon), and over characters as in SentencePiece (Llama-2, Mistral).
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
#include "engine/tokenizer/decoder_rules.hpp"
#include "engine/tokenizer/normalizer.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"

namespace dculab::engine {

struct TokenizerFile {
  BpeModel model;
  std::vector<AddedToken> added_tokens;
  Normalizer normalizer;
  PreTokenizerRules pre_tokenizer;
  DecoderRules decoder;
  std::vector<TokenId> prefix;  // special tokens put before a text: BOS
  std::vector<TokenId> suffix;  // and behind it: EOS
};

// `json` is the content of the file called `file`. Throws InputError with the file, and the line when it is no JSON.
[[nodiscard]] TokenizerFile read_tokenizer_file(std::string_view json, const std::string& file);

}  // namespace dculab::engine
