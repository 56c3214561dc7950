// Which bytes are characters, and what stands in for those that are not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dculab {

enum class Utf8Kind : std::uint8_t {
  character,
  invalid,    // can never become a character, whatever follows
  truncated,  // the text ends inside a character
};

// The first character of a text, or the longest piece of one that stands there.
struct Utf8Unit {
  std::size_t size = 0;  // bytes, at least 1
  Utf8Kind kind = Utf8Kind::character;
  char32_t code_point = 0;  // of a character
};

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Precondition: `text` is not empty.
[[nodiscard]] Utf8Unit first_unit(std::string_view text);

// Bytes before the first one that is not part of a character; text.size() when all are.
[[nodiscard]] std::size_t valid_prefix(std::string_view text);

// Throws InputError, with the line, for bytes that are not UTF-8: what is read is shown and written again.
void require_utf8(const std::string& file, std::string_view text);

// `text` with U+FFFD for each piece that is no character, as Rust's from_utf8_lossy and Python's errors="replace".
[[nodiscard]] std::string repaired(std::string_view text);

void append_character(std::string& text, char32_t code_point);

// The property White_Space.
[[nodiscard]] bool is_white_space(char32_t code_point);

}  // namespace dculab
