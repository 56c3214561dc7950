// What somebody may have meant by a word that is not known: the nearest of those that are.
#pragma once

#include <cstddef>
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

// Which of the known words differ by the fewest letters from `word`, however many those are: four at most.
[[nodiscard]] std::vector<std::size_t> nearest_words(std::string_view word, std::span<const std::string_view> known);

// "did you mean 'a', 'b' or 'c'?"; "" of none.
[[nodiscard]] std::string did_you_mean(std::span<const std::string_view> found);

}  // namespace dculab
