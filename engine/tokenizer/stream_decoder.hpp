// Decodes tokens one at a time, for text that is shown while it is generated.
#pragma once

#include <string>

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
  const Tokenizer& tokenizer_;
  SpecialText special_;
  std::string pending_;  // the beginning of a character
};

}  // namespace dculab::engine
