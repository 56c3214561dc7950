#include "engine/tokenizer/added_tokens.hpp"

#include <algorithm>
#include <functional>

#include "fields/utf8.hpp"

namespace dculab::engine {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Where the last character of a text begins. Precondition: not empty, valid UTF-8.
std::size_t last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  return begin;
}

std::size_t leading_white_space(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const Utf8Unit unit = first_unit(text.substr(size));
    if (!is_white_space(unit.code_point)) break;
    size += unit.size;
  }
  return size;
}

// Where the white space at the end of a text begins.
std::size_t trailing_white_space(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = last_character(text);
    if (!is_white_space(first_unit(text.substr(last)).code_point)) break;
    text = text.substr(0, last);
  }
  return text.size();
}

// "\w" of Rust's regex crate, which also counts the two joiners: Unicode Technical Standard 18, annex C.
bool is_word_character(std::string_view character) {
  static const Regex word(R"([\w\x{200C}\x{200D}])", PatternKind::regex);
  return word.cover(character).front().is_match;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view before = text.substr(0, begin);
  const std::string_view after = text.substr(end);
  const bool open_left = before.empty() || !is_word_character(before.substr(last_character(before)));
  const bool open_right = after.empty() || !is_word_character(after.substr(0, first_unit(after).size));
  return open_left && open_right;
}

}  // namespace

void AddedTokenFinder::add(const std::string& pattern, AddedToken token) {
  if (pattern.empty() || !tokens_.emplace(pattern, std::move(token)).second) return;
  std::vector<std::size_t>& lengths = lengths_[static_cast<unsigned char>(pattern.front())];
  const auto place = std::lower_bound(lengths.begin(), lengths.end(), pattern.size(), std::greater<>());
  if (place == lengths.end() || *place != pattern.size()) lengths.insert(place, pattern.size());
}

const AddedToken* AddedTokenFinder::token_at(std::string_view text, std::size_t position, std::size_t& length) const {
  for (const std::size_t candidate : lengths_[static_cast<unsigned char>(text[position])]) {
    if (candidate > text.size() - position) continue;
    const auto found = tokens_.find(text.substr(position, candidate));
    if (found == tokens_.end()) continue;
    length = candidate;
    return &found->second;
  }
  return nullptr;
}

std::vector<TextPiece> AddedTokenFinder::split(std::string_view text) const {
  std::vector<TextPiece> pieces;
  std::size_t taken = 0;  // everything before is in a piece already
  for (std::size_t position = 0; position < text.size();) {
    std::size_t length = 0;
    const AddedToken* token = token_at(text, position, length);
    if (token == nullptr) {
      ++position;
      continue;
    }
    std::size_t begin = position;
    std::size_t end = position += length;  // what is stripped on the right can still begin another token
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    if (token->lstrip) begin = std::max(trailing_white_space(text.substr(0, begin)), taken);
    if (token->rstrip) end += leading_white_space(text.substr(end));
    if (taken < begin) pieces.push_back({text.substr(taken, begin - taken), std::nullopt});
    pieces.push_back({{}, token->id});
    taken = end;
  }
  if (taken < text.size()) pieces.push_back({text.substr(taken), std::nullopt});
  return pieces;
}

}  // namespace dculab::engine
