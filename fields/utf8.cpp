#include "fields/utf8.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace dculab {
namespace {

// What may follow a first byte: Unicode standard, table 3-7, "Well-Formed UTF-8 Byte Sequences".
struct Lead {
  std::size_t size = 0;      // bytes of the whole character; 0: no character starts so
  unsigned char low = 0x80;  // range of the second byte
  unsigned char high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Unit first_unit(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.size == 0) return {1, Utf8Kind::invalid, 0};
  if (lead.size == 1) return {1, Utf8Kind::character, byte(0)};
  char32_t code_point = byte(0) & (0x7FU >> lead.size);
  for (std::size_t i = 1; i < lead.size; ++i) {
    if (i == text.size()) return {i, Utf8Kind::truncated, 0};
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {i, Utf8Kind::invalid, 0};
    code_point = (code_point << 6U) | (byte(i) & 0x3FU);
  }
  return {lead.size, Utf8Kind::character, code_point};
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const Utf8Unit unit = first_unit(text.substr(position));
    if (unit.kind != Utf8Kind::character) break;
    position += unit.size;
  }
  return position;
}

void require_utf8(const std::string& file, std::string_view text) {
  const std::size_t valid = valid_prefix(text);
  if (valid == text.size()) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n');
  throw InputError(
      file, static_cast<int>(line),
      "is not UTF-8 (byte " + std::to_string(static_cast<unsigned char>(text[valid])) + "); save it as UTF-8");
}

std::string repaired(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    result += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    result += kReplacementCharacter;
    text.remove_prefix(first_unit(text).size);
  }
  return result;
}

void append_character(std::string& text, char32_t code_point) {
  const auto push = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0U | (code_point >> 6U));
    push(0x80U | (code_point & 0x3FU));
  } else if (code_point < 0x10000) {
    push(0xE0U | (code_point >> 12U));
    push(0x80U | ((code_point >> 6U) & 0x3FU));
    push(0x80U | (code_point & 0x3FU));
  } else {
    push(0xF0U | (code_point >> 18U));
    push(0x80U | ((code_point >> 12U) & 0x3FU));
    push(0x80U | ((code_point >> 6U) & 0x3FU));
    push(0x80U | (code_point & 0x3FU));
  }
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace dculab
