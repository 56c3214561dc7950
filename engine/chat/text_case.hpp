// Texts as Python's methods of str change them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dculab::engine::chat {

[[nodiscard]] std::string in_upper_case(std::string_view text);
[[nodiscard]] std::string in_lower_case(std::string_view text);

// Without white space, or without any of `characters`, at the ends asked for.
[[nodiscard]] std::string stripped(std::string_view text, const std::string* characters, bool left, bool right);

// Between white space.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

}  // namespace dculab::engine::chat
