#include "study/scenario/device_words.hpp"

#include <algorithm>
#include <cctype>

namespace dculab::study {

std::vector<std::string> device_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte))
      words.back() += static_cast<char>(std::tolower(byte));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::ptrdiff_t words_said(const std::vector<std::string>& name, const std::vector<std::string>& device) {
  return std::ranges::count_if(name, [&device](const std::string& word) {
    return std::ranges::any_of(device, [&word](const std::string& said) { return said.starts_with(word); });
  });
}

}  // namespace dculab::study
