// ASCII letters without their case, whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace dculab {

[[nodiscard]] constexpr char lower_case(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = lower_case(letter);
  return lower;
}

}  // namespace dculab
