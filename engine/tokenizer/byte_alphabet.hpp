// How the 256 bytes are written in a vocabulary: as visible characters where everything is spelled in bytes, as
// "<0x0A>" where bytes stand in for characters that are no tokens.
//
// Source: GPT-2, encoder.py, bytes_to_unicode: printable Latin-1 bytes stand for themselves, the others follow from
// U+0100 on. A space is written "Ġ", a newline "Ċ".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dculab::engine {

[[nodiscard]] std::string to_byte_alphabet(std::string_view bytes);

// The bytes that a token stands for. A token with a character outside the alphabet stands for its own UTF-8.
[[nodiscard]] std::string from_byte_alphabet(std::string_view token);

// "<0x0A>": SentencePiece's byte_fallback, and the byte that such a token stands for.
[[nodiscard]] std::string byte_fallback_token(unsigned char byte);
[[nodiscard]] std::optional<unsigned char> fallback_byte(std::string_view token);

}  // namespace dculab::engine
