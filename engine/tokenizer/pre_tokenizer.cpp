#include "engine/tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "engine/tokenizer/byte_alphabet.hpp"
#include "engine/tokenizer/normalizer.hpp"

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

std::vector<std::string_view> split_by(const std::vector<SplitRule>& rules, std::string_view text) {
  std::vector<std::string_view> pieces = {text};
  for (const SplitRule& rule : rules) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) append_pieces(rule, piece, finer);
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace

PreTokenizer::PreTokenizer(PreTokenizerRules rules) : rules_(std::move(rules)) {
  if (rules_.byte_level && rules_.byte_level->use_regex) gpt2_ = SplitRule{Regex(kGpt2Pattern, PatternKind::regex)};
}

void PreTokenizer::for_each_word(std::string_view text, TextStart start, const Consume& consume) const {
  if (text.empty()) return;
  for (const std::string_view piece : split_by(rules_.splits, text)) {
    const bool is_first = start == TextStart::here && piece.data() == text.data();
    if (rules_.metaspace) {
      mark_spaces(piece, is_first ? TextStart::here : TextStart::earlier, consume);
    } else if (rules_.byte_level) {
      to_bytes(piece, consume);
    } else {
      consume(piece);
    }
  }
}

void PreTokenizer::mark_spaces(std::string_view piece, TextStart start, const Consume& consume) const {
  const Metaspace& rule = *rules_.metaspace;
  std::string text = replaced(piece, " ", rule.replacement);
  const bool prepends = rule.prepend == Metaspace::Prepend::always ||
                        (rule.prepend == Metaspace::Prepend::first && start == TextStart::here);
  if (prepends && !text.starts_with(rule.replacement)) text.insert(0, rule.replacement);
  if (!rule.split) return consume(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(rule.replacement, begin + 1), text.size());
    consume(std::string_view(text).substr(begin, end - begin));
    begin = end;
  }
}

void PreTokenizer::to_bytes(std::string_view piece, const Consume& consume) const {
  std::string with_space;
  if (rules_.byte_level->add_prefix_space && piece.front() != ' ') {
    with_space = ' ';
    with_space += piece;
    piece = with_space;
  }
  std::vector<std::string_view> words = {piece};
  if (gpt2_) {
    words.clear();
    append_pieces(*gpt2_, piece, words);
  }
  for (const std::string_view word : words) {
    if (rules_.splits_of_bytes.empty()) {
      consume(word);
      continue;
    }
    const std::string spelled = to_byte_alphabet(word);
    for (const std::string_view part : split_by(rules_.splits_of_bytes, spelled)) consume(from_byte_alphabet(part));
  }
}

}  // namespace dculab::engine
