#include "engine/tokenizer/stream_decoder.hpp"

#include <utility>

#include "fields/utf8.hpp"

namespace dculab::engine {
namespace {

// Where a character begins that `bytes` does not finish; bytes.size() when there is none.
std::size_t unfinished_tail(std::string_view bytes) {
  constexpr std::size_t kLongestTail = 3;  // of a character of four bytes
  for (std::size_t size = 1; size <= kLongestTail && size <= bytes.size(); ++size) {
    const std::size_t begin = bytes.size() - size;
    const Utf8Unit unit = first_unit(bytes.substr(begin));
    if (unit.kind == Utf8Kind::truncated) return begin;
    if (unit.kind == Utf8Kind::character) break;
  }
  return bytes.size();
}

}  // namespace

std::string StreamDecoder::push(TokenId id) {
  const DecoderRules& rules = tokenizer_.decoder();
  if (!rules) return push_bytes(tokenizer_.token_bytes(id, special_));
  return tokenizer_.is_shown(id, special_) ? push_piece(id, *rules) : std::string();
}

std::string StreamDecoder::push_bytes(std::string_view bytes) {
  pending_ += bytes;
  const std::size_t certain = unfinished_tail(pending_);
  const std::string text = repaired(std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
  return text;
}

std::string StreamDecoder::push_piece(TokenId id, const PieceDecoder& rules) {
  const bool is_first = !std::exchange(has_begun_, true);
  const std::string_view bytes = tokenizer_.token_bytes(id, special_);
  if (tokenizer_.is_fallback_byte(id)) {
    pending_ += bytes;
    return {};
  }
  const char* const space = is_first && rules.drops_first_marks ? "" : " ";
  const std::string piece = rules.space_mark.empty() ? std::string(bytes) : replaced(bytes, rules.space_mark, space);
  return stripped(end_of_bytes() + piece, rules);
}

// One wrong byte spoils all that stand in a row with it: source, the tokenizers library's ByteFallback.
std::string StreamDecoder::end_of_bytes() {
  const std::string bytes = std::exchange(pending_, {});
  if (valid_prefix(bytes) == bytes.size()) return bytes;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) text += kReplacementCharacter;
  return text;
}

std::string StreamDecoder::stripped(std::string text, const PieceDecoder& rules) {
  std::size_t begin = 0;
  while (can_strip_ && begin < text.size()) {
    can_strip_ = text[begin] == rules.strip && num_stripped_ < rules.strip_at_most;
    if (can_strip_) ++begin, ++num_stripped_;
  }
  return text.substr(begin);
}

std::string StreamDecoder::finish() {
  const DecoderRules& rules = tokenizer_.decoder();
  const std::string rest = rules ? stripped(end_of_bytes(), *rules) : repaired(std::exchange(pending_, {}));
  has_begun_ = false;
  can_strip_ = true;
  num_stripped_ = 0;
  return rest;
}

}  // namespace dculab::engine
