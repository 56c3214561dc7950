#include "engine/tokenizer/stream_decoder.hpp"

#include <utility>

#include "engine/tokenizer/utf8.hpp"

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
  pending_ += tokenizer_.token_bytes(id, special_);
  const std::size_t certain = unfinished_tail(pending_);
  const std::string text = repaired(std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
  return text;
}

std::string StreamDecoder::finish() { return repaired(std::exchange(pending_, {})); }

}  // namespace dculab::engine
