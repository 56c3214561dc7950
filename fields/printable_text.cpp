#include "fields/printable_text.hpp"

#include <cstdio>

#include "fields/utf8.hpp"

namespace dculab {
namespace {

// Unicode's Bidi_Control: embeddings, overrides, isolates and marks.
bool turns_direction(char32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

std::string escaped(const char* format, char32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, format, static_cast<unsigned>(code));
  return text;
}

// As it is, or escaped.
std::string shown(std::string_view bytes, const Utf8Unit& unit) {
  if (unit.kind == Utf8Kind::character) {
    if (unit.code_point == '\n' || unit.code_point == '\t') return std::string(bytes);
    if (is_control(unit.code_point)) return escaped("\\x%02x", unit.code_point);
    return turns_direction(unit.code_point) ? escaped("\\u%04x", unit.code_point) : std::string(bytes);
  }
  std::string text;
  for (const char byte : bytes) text += escaped("\\x%02x", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    result += shown(text.substr(0, unit.size), unit);
    text.remove_prefix(unit.size);
  }
  return result;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto is_continuation = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; };
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
