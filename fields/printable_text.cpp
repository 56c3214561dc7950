#include "fields/printable_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace dculab {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t size = 0;  // 0: not UTF-8
};

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The first character of a text that is not empty.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return {};
  std::uint32_t code = lead & (0x7FU >> size);
  for (const char byte : text.substr(1, size - 1)) {
    if (!is_continuation(byte)) return {};
    code = code << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[size] || code > 0x10FFFF || is_surrogate) return {};
  return {code, size};
}

// Unicode's Bidi_Control: embeddings, overrides, isolates and marks.
bool turns_direction(std::uint32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

std::string escaped(const char* format, std::uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, format, static_cast<unsigned>(code));
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_character(text);
    const std::size_t size = std::max<std::size_t>(next.size, 1);
    const bool stays = next.code == '\n' || next.code == '\t';
    if (next.size == 0)
      result += escaped("\\x%02x", static_cast<unsigned char>(text.front()));
    else if (is_control(next.code) && !stays)
      result += escaped("\\x%02x", next.code);
    else if (turns_direction(next.code))
      result += escaped("\\u%04x", next.code);
    else
      result += text.substr(0, size);
    text.remove_prefix(size);
  }
  return result;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && most - end < 4 && is_continuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char letter : shortened(text)) result += letter == '\n' ? "\\n" : std::string(1, letter);
  return result + "'";
}

std::string grouped_digits(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

}  // namespace dculab
