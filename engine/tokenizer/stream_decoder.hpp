// Decodes tokens one at a time, for text that is shown while it is generated.
#pragma once

#include <string>
#include <string_view>

#include "engine/tokenizer/tokenizer.hpp"

namespace dculab::engine {

// All that push() and finish() return, put together, is what Tokenizer::decode makes of all the ids at once.
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, SpecialText special) : tokenizer_(tokenizer), special_(special) {}

  // The text that is certain now: whole characters only, so often nothing.
  [[nodiscard]] std::string push(TokenId id);

  // U+FFFD when the last character has stayed incomplete, else nothing. The decoder can be used again.
  [[nodiscard]] std::string finish();

 private:
  [[nodiscard]] std::string push_bytes(std::string_view bytes);
  [[nodiscard]] std::string push_piece(TokenId id, const PieceDecoder& rules);
  [[nodiscard]] std::string end_of_bytes();
  [[nodiscard]] std::string stripped(std::string text, const PieceDecoder& rules);

  const Tokenizer& tokenizer_;
  SpecialText special_;
  std::string pending_;     // the beginning of a character; of pieces: bytes in a row, which are judged together
  bool has_begun_ = false;  // a token has come
  bool can_strip_ = true;   // nothing has come yet that stays
  int num_stripped_ = 0;
};

}  // namespace dculab::engine
