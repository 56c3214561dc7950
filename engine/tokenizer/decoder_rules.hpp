// How tokens become text again: "decoder" of tokenizer.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dculab::engine {

// Tokens of characters (SentencePiece). Applied in this order.
struct PieceDecoder {
  struct Replace {
    std::string pattern;  // taken literally, not empty
    std::string content;
  };
  std::vector<Replace> replaces{};  // in each token
  bool byte_fallback = false;       // "<0x0A>" is a byte; a run of bytes that is no UTF-8 is U+FFFD for each byte
  char strip = '\0';                // this character, where it stands at the beginning of the whole text,
  int strip_at_most = 0;            //   is left out so often at most
  std::string space_mark{};         // "Metaspace": becomes a space; empty: no such step
  bool drops_first_marks = false;   //   but in the first token nothing
};

// Absent: "ByteLevel", tokens are written in the byte alphabet.
using DecoderRules = std::optional<PieceDecoder>;

}  // namespace dculab::engine
