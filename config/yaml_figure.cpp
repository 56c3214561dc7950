#include "config/yaml_figure.hpp"

#include <array>
#include <charconv>
#include <cstdio>

#include "fields/utf8.hpp"

namespace dculab::config {
namespace {

// What a YAML file may not hold as it is, or would not be given back as it was: control characters, line and paragraph
// separators, the byte order mark.
bool needs_escape(char32_t letter) {
  return letter < 0x20 || (letter >= 0x7F && letter < 0xA0) || letter == 0x2028 || letter == 0x2029 || letter == 0xFEFF;
}

}  // namespace

std::string figure_text(int value) { return std::to_string(value); }

std::string figure_text(double value) {
  std::array<char, 64> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    if (unit.code_point == '"' || unit.code_point == '\\') result += '\\';
    if (needs_escape(unit.code_point)) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(unit.code_point));
      result += escape.data();
    } else {
      result += text.substr(0, unit.size);
    }
    text.remove_prefix(unit.size);
  }
  return result + '"';
}

}  // namespace dculab::config
