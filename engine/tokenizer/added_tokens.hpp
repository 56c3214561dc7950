// Finds in a text the tokens that stand for themselves, such as "<|endoftext|>", before anything else is done to it.
//
// Source of the rules: Hugging Face tokenizers, added_vocabulary.rs.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "engine/tokenizer/bpe.hpp"
#include "engine/tokenizer/regex.hpp"

namespace dculab::engine {

// An entry of "added_tokens" in tokenizer.json.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;      // left out when decoding skips special tokens
  bool normalized = false;   // looked for in the normalized text rather than in the text itself
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;       // and on its right
  bool single_word = false;  // found only where no word character touches it
};

// A token found in a text, or the text between two.
struct TextPiece {
  std::string_view text;  // empty for a token
  std::optional<TokenId> token;
};

class AddedTokenFinder {
 public:
  // Looks for `pattern`, which is the token's content or its normalized form. The first of two equal patterns counts.
  void add(const std::string& pattern, AddedToken token);

  // Precondition: `text` is valid UTF-8. Where tokens overlap the leftmost is taken, then the longest.
  [[nodiscard]] std::vector<TextPiece> split(std::string_view text) const;

 private:
  // The longest token that starts at `position`; nullptr when there is none. Sets its length in the text.
  [[nodiscard]] const AddedToken* token_at(std::string_view text, std::size_t position, std::size_t& length) const;

  StringMap<AddedToken> tokens_;                       // by pattern
  std::array<std::vector<std::size_t>, 256> lengths_;  // of the patterns that start with a byte, longest first
};

}  // namespace dculab::engine
