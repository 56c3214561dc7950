// What somebody may have meant by a word that is not known: the nearest of those that are.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dculab {

// Whether two words are one, whatever the case of their letters.
[[nodiscard]] bool same_word(std::string_view one, std::string_view other);

// The known words that begin with `word`, four at most; else the one that differs by so few letters that it may be a
// slip; else the longest with which `word` begins. Case does not count. "did you mean 'h100-pcie' or 'h100-sxm'?"; ""
// where none is near.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string_view> known);
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace dculab
