#include "engine/tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <utility>

namespace dculab::engine {
namespace {

// Source: GPT-2, encoder.py, Encoder.pat.
constexpr const char* kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Whether `current` is one piece with the stretch before it (or behind it, for merged_with_next).
bool joins(SplitBehavior behavior, const Stretch& current, bool previous_is_match) {
  if (behavior == SplitBehavior::contiguous) return current.is_match == previous_is_match;
  return current.is_match && !previous_is_match;
}

// The delimiter that has just been joined still counts as one: of two in a row, only the first joins.
std::vector<Stretch> merged(std::vector<Stretch> stretches, SplitBehavior behavior) {
  const bool backwards = behavior == SplitBehavior::merged_with_next;
  if (backwards) std::reverse(stretches.begin(), stretches.end());
  std::vector<Stretch> pieces;
  bool previous_is_match = false;
  for (const Stretch& stretch : stretches) {
    if (!pieces.empty() && joins(behavior, stretch, previous_is_match)) {
      (backwards ? pieces.back().begin : pieces.back().end) = backwards ? stretch.begin : stretch.end;
    } else {
      pieces.push_back(stretch);
    }
    previous_is_match = stretch.is_match;
  }
  if (backwards) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

void append_pieces(const SplitRule& rule, std::string_view text, std::vector<std::string_view>& pieces) {
  std::vector<Stretch> stretches = rule.pattern.cover(text);
  if (rule.delimiter == Delimiter::gaps) {
    for (Stretch& stretch : stretches) stretch.is_match = !stretch.is_match;
  }
  if (rule.behavior == SplitBehavior::removed) {
    std::erase_if(stretches, [](const Stretch& stretch) { return stretch.is_match; });
  } else if (rule.behavior != SplitBehavior::isolated) {
    stretches = merged(std::move(stretches), rule.behavior);
  }
  for (const Stretch& stretch : stretches) {
    if (stretch.begin < stretch.end) pieces.push_back(text.substr(stretch.begin, stretch.end - stretch.begin));
  }
}

}  // namespace

PreTokenizer::PreTokenizer(PreTokenizerRules rules) : rules_(std::move(rules)) {
  if (rules_.use_regex) gpt2_ = SplitRule{Regex(kGpt2Pattern, PatternKind::regex)};
}

void PreTokenizer::for_each_word(std::string_view text, const std::function<void(std::string_view)>& consume) const {
  if (text.empty()) return;
  std::vector<std::string_view> pieces = {text};
  for (const SplitRule& rule : rules_.splits) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) append_pieces(rule, piece, finer);
    pieces = std::move(finer);
  }
  std::string with_space;
  std::vector<std::string_view> words;
  for (std::string_view piece : pieces) {
    if (rules_.add_prefix_space && piece.front() != ' ') {
      with_space = ' ';
      with_space += piece;
      piece = with_space;
    }
    words.clear();
    if (gpt2_) {
      append_pieces(*gpt2_, piece, words);
    } else {
      words.push_back(piece);
    }
    for (const std::string_view word : words) consume(word);
  }
}

}  // namespace dculab::engine
