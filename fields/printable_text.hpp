// Text of files that other people wrote, made fit for messages and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dculab {

// What a terminal may be given: control characters (C0, DEL, C1), characters that turn the direction of writing, and
// bytes that are not UTF-8 become "\x1b" or "\u202e". Line ends and tabs stay.
[[nodiscard]] std::string printable(std::string_view text);

// The first `most` bytes, cut before a character that does not fit, and "..." for the rest.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most = 200);

// A value of a file in a message: 'in quotes', shortened, on one line.
[[nodiscard]] std::string in_quotes(std::string_view text);

// "2,999,981"
[[nodiscard]] std::string grouped_digits(std::size_t number);

}  // namespace dculab
