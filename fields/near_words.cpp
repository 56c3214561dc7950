#include "fields/near_words.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/letter_case.hpp"
#include "fields/printable_text.hpp"

namespace dculab {
namespace {

constexpr std::size_t kLongestWord = 64, kMostGuesses = 4, kLeastBeginning = 3;

[[nodiscard]] bool same_letter(char one, char other) { return lower_case(one) == lower_case(other); }

[[nodiscard]] bool begins(std::string_view word, std::string_view longer) {
  return longer.size() > word.size() && same_word(word, longer.substr(0, word.size()));
}

// Letters to insert, to delete, to exchange or to swap with the next one: the distance of optimal string alignment.
[[nodiscard]] std::size_t edits(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before, above(other.size() + 1), row(other.size() + 1);
  for (std::size_t j = 0; j <= other.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t exchanged = above[j - 1] + (same_letter(one[i - 1], other[j - 1]) ? 0 : 1);
      row[j] = std::min({exchanged, above[j] + 1, row[j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && same_letter(one[i - 1], other[j - 2]) && same_letter(one[i - 2], other[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

[[nodiscard]] std::vector<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_edits = word.size() <= 3 ? 2 : std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edits(word, candidate);
    if (distance >= best_edits || distance >= candidate.size()) continue;
    best = candidate;
    best_edits = distance;
  }
  return best.empty() ? std::vector<std::string_view>{} : std::vector{best};
}

[[nodiscard]] std::vector<std::string_view> guesses(std::string_view word, std::span<const std::string_view> known) {
  std::vector<std::string_view> found;
  if (word.empty() || word.size() > kLongestWord) return found;
  if (const auto same = std::ranges::find_if(known, [word](auto other) { return same_word(word, other); });
      same != known.end())
    return {*same};
  for (const std::string_view candidate : known)
    if (word.size() >= kLeastBeginning && begins(word, candidate)) found.push_back(candidate);
  std::ranges::stable_sort(found, {}, &std::string_view::size);
  if (found.size() > kMostGuesses) found.resize(kMostGuesses);
  if (!found.empty()) return found;
  if (found = nearest(word, known); !found.empty()) return found;
  for (const std::string_view candidate : known)
    if (candidate.size() >= kLeastBeginning && begins(candidate, word) &&
        (found.empty() || candidate.size() > found.front().size()))
      found = {candidate};
  return found;
}

}  // namespace

bool same_word(std::string_view one, std::string_view other) { return std::ranges::equal(one, other, same_letter); }

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  return did_you_mean(guesses(word, known));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  return suggestion(word, std::vector<std::string_view>(known.begin(), known.end()));
}

std::vector<std::size_t> nearest_words(std::string_view word, std::span<const std::string_view> known) {
  std::vector<std::size_t> found;
  std::size_t least = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::size_t distance = edits(word.substr(0, kLongestWord), known[i]);
    if (distance < least) found.clear();
    if (found.empty()) least = distance;
    if (distance == least && found.size() < kMostGuesses) found.push_back(i);
  }
  return found;
}

std::string did_you_mean(std::span<const std::string_view> found) {
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i)
    text.append(i == 0 ? "did you mean " : i + 1 < found.size() ? ", " : " or ").append(in_quotes(found[i]));
  return text.empty() ? text : text + "?";
}

}  // namespace dculab
