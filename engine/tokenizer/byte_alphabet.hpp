// The visible characters that stand for the 256 bytes in the vocabulary of a byte-level tokenizer.
//
// Source: GPT-2, encoder.py, bytes_to_unicode: printable Latin-1 bytes stand for themselves, the others follow from
// U+0100 on. A space is written "Ġ", a newline "Ċ".
#pragma once

#include <string>
#include <string_view>

namespace dculab::engine {

[[nodiscard]] std::string to_byte_alphabet(std::string_view bytes);

// The bytes that a token stands for. A token with a character outside the alphabet stands for its own UTF-8.
[[nodiscard]] std::string from_byte_alphabet(std::string_view token);

}  // namespace dculab::engine
