// Translates a pattern from Oniguruma's Ruby syntax to PCRE2's.
// Sources: Oniguruma doc/RE and doc/UNICODE_PROPERTIES; pcre2pattern(3).
#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "engine/tokenizer/regex.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine {
namespace {

// Properties that are neither a general category (one or two letters) nor a script.
constexpr std::array<std::string_view, 6> kProperties = {"Alphabetic", "White_Space", "Uppercase",
                                                         "Lowercase",  "Any",         "Emoji"};
constexpr std::string_view kWordItems = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

bool is_letter_or_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (position_ < pattern_.size()) {
      if (peek() == '\\') {
        escape();
      } else if (in_class_) {
        class_item();
      } else {
        item();
      }
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return position_ + ahead < pattern_.size() ? pattern_[position_ + ahead] : '\0';
  }
  [[nodiscard]] bool starts_with(std::string_view text) const { return pattern_.substr(position_).starts_with(text); }
  void copy(std::size_t count) {
    result_ += pattern_.substr(position_, count);
    position_ += count;
  }
  void replace(std::size_t count, std::string_view by) {
    result_ += by;
    position_ += count;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError("the pattern " + in_quotes(pattern_) + " uses " + what + ", which is not supported");
  }

  void item() {
    if (peek() == '(') return group();
    if (peek() == '{') return interval();
    if (peek() == '[') {
      in_class_ = true;
      copy(peek(1) == '^' ? 2 : 1);
      if (peek() == ']') refuse("']' first in a set");
      return;
    }
    copy(1);
  }

  void class_item() {
    if (peek() == '[') return inner_class();
    if (starts_with("&&")) refuse("an intersection of sets ('&&')");
    if (peek() == ']') in_class_ = false;
    copy(1);
  }

  // A set inside a set is a union, so its items may as well stand in the outer one.
  void inner_class() {
    if (peek(1) == '^') refuse("a negated set inside a set");
    const std::size_t close = pattern_.find(']', position_);
    const std::string_view items = pattern_.substr(position_ + 1, close - position_ - 1);
    if (close == std::string_view::npos || items.empty() || items.find_first_of("[\\^-&") != std::string_view::npos)
      refuse("a set inside a set that holds more than plain characters");
    result_ += items;
    position_ = close + 1;
  }

  void group() {
    static constexpr std::array<std::string_view, 8> kKnown = {"(?:",  "(?i:", "(?=", "(?!",
                                                               "(?<=", "(?<!", "(?>", "(?i)"};
    if (peek(1) == '*') refuse("'(*'");
    if (peek(1) != '?') return copy(1);
    const auto* known = std::find_if(kKnown.begin(), kKnown.end(), [&](auto opening) { return starts_with(opening); });
    if (known == kKnown.end()) refuse("the group '" + std::string(pattern_.substr(position_, 4)) + "'");
    // In the middle of a pattern, Ruby also moves the alternatives that follow into the group.
    if (*known == "(?i)" && position_ != 0) refuse("'(?i)' behind the beginning");
    copy(known->size());
  }

  // Ruby reads "{n,m}+" as a repeated repeat and "{,m}" as "{0,m}"; PCRE2 does not.
  void interval() {
    const std::size_t close = pattern_.find('}', position_);
    const std::size_t size = close == std::string_view::npos ? 1 : close - position_ + 1;
    const std::string_view inside = size > 1 ? pattern_.substr(position_ + 1, size - 2) : std::string_view();
    const bool is_interval = !inside.empty() && inside.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!is_interval) return copy(1);
    if (inside.front() == ',') refuse("'{,'");
    copy(size);
    if (peek() == '+' || peek() == '?') refuse("'}" + std::string(1, peek()) + "'");
  }

  void escape() {
    const char name = peek(1);
    switch (name) {
      case 's':
        return replace(2, R"(\p{White_Space})");  // PCRE2's \s also takes U+180E
      case 'S':
        return replace(2, R"(\P{White_Space})");
      case 'w':
        return replace(2, in_class_ ? std::string(kWordItems) : "[" + std::string(kWordItems) + "]");
      case 'W':
        if (in_class_) refuse("'\\W' in a set");
        return replace(2, "[^" + std::string(kWordItems) + "]");
      case 'v':
        return replace(2, R"(\x{0B})");
      case 'u':
        return hex_character();
      case 'p':
      case 'P':
        return property();
      case 'A':
      case 'z':
        if (in_class_) refuse(std::string("'\\") + name + "' in a set");
        return copy(2);
      case 'd':
      case 'D':
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
      case 'x':
        return copy(2);
      default:
        if (name == '\0') refuse("'\\' at the end");
        if (is_letter_or_digit(name)) refuse(std::string("'\\") + name + "'");
        return copy(2);
    }
  }

  void hex_character() {
    const std::string_view digits = pattern_.substr(std::min(position_ + 2, pattern_.size())).substr(0, 4);
    if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
      refuse("'\\u' without four hexadecimal digits");
    }
    replace(6, "\\x{" + std::string(digits) + "}");
  }

  // A bare script name is the property Script in Oniguruma, but Script_Extensions in PCRE2.
  void property() {
    const std::size_t close = pattern_.find('}', position_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse("'\\p' without '{...}'");
    std::string_view name = pattern_.substr(position_ + 3, close - position_ - 3);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const bool is_script =
        name.size() > 2 && std::find(kProperties.begin(), kProperties.end(), name) == kProperties.end();
    const std::string opening = std::string("\\") + peek(1) + (negated ? "{^" : "{") + (is_script ? "sc:" : "");
    replace(close - position_ + 1, opening + std::string(name) + "}");
  }

  std::string_view pattern_;
  std::size_t position_ = 0;
  bool in_class_ = false;
  std::string result_;
};

}  // namespace

std::string pcre_from_oniguruma(std::string_view pattern) { return Translation(pattern).run(); }

}  // namespace dculab::engine
