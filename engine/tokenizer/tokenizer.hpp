// Text to token ids and back, as the Hugging Face `tokenizers` library does it for byte-pair encoding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "engine/tokenizer/added_tokens.hpp"
#include "engine/tokenizer/bpe.hpp"
#include "engine/tokenizer/normalizer.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"
#include "engine/tokenizer/tokenizer_file.hpp"

namespace dculab::engine {

// Whether encoding puts the tokenizer's own special tokens (BOS, EOS) around the text. Special tokens that are
// written out in the text are recognised either way.
enum class SpecialTokens : std::uint8_t { add, omit };

// Whether decoding shows special tokens or leaves them out.
enum class SpecialText : std::uint8_t { show, skip };

// Never changes, so any number of threads may use one.
class Tokenizer {
 public:
  // Reads an unmodified tokenizer.json. Throws InputError.
  [[nodiscard]] static Tokenizer load(const std::filesystem::path& path);

  // The same from the content of a file; `name` is what messages call it.
  [[nodiscard]] static Tokenizer parse(std::string_view json, const std::string& name);

  // Bytes that are not UTF-8 count as U+FFFD.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, SpecialTokens special) const;

  // Ids without a token are left out; bytes that make no character become U+FFFD.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, SpecialText special) const;

  // What one token adds to a text: often not whole characters. Empty for ids without a token.
  [[nodiscard]] std::string_view token_bytes(TokenId id, SpecialText special) const;

  // For StreamDecoder: whether decoding sees the token at all, and whether it is a byte that stands in for a part of a
  // character ("<0x0A>").
  [[nodiscard]] bool is_shown(TokenId id, SpecialText special) const;
  [[nodiscard]] bool is_fallback_byte(TokenId id) const { return tokens_[static_cast<std::size_t>(id)].is_byte; }
  [[nodiscard]] const DecoderRules& decoder() const { return decoder_; }

  // One more than the largest id.
  [[nodiscard]] int vocab_size() const { return static_cast<int>(tokens_.size()); }

  // `token` as tokenizer.json writes it: "<|endoftext|>", "Ġthe".
  [[nodiscard]] std::optional<TokenId> token_id(std::string_view token) const;

 private:
  explicit Tokenizer(TokenizerFile file);
  void enter(TokenId id, const std::string& token);
  void enter(const AddedToken& added);
  void append_text(std::string_view text, TextStart start, WordEncoder& words, std::vector<TokenId>& ids) const;
  void set_token(TokenId id, const std::string& written, bool special);

  struct Token {
    std::string bytes;
    bool special = false;
    bool exists = false;
    bool is_byte = false;
  };

  Bpe bpe_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  DecoderRules decoder_;
  std::vector<TokenId> prefix_;
  std::vector<TokenId> suffix_;
  AddedTokenFinder in_raw_text_;
  AddedTokenFinder in_normalized_text_;
  StringMap<TokenId> added_ids_;  // by content
  std::vector<Token> tokens_;     // [vocab_size]
};

}  // namespace dculab::engine
