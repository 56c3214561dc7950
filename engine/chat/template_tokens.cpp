#include "engine/chat/template_tokens.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine::chat {
namespace {

[[nodiscard]] bool is_space(char each) { return std::string_view(" \t\n\r\v\f").find(each) != std::string_view::npos; }
[[nodiscard]] bool is_digit(char each) { return each >= '0' && each <= '9'; }
[[nodiscard]] bool begins_name(char each) {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || each == '_';
}

// Lines end with "\n", and one at the very end goes.
[[nodiscard]] std::string with_plain_lines(std::string_view source) {
  std::string text;
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r') {
      text += source[at];
      continue;
    }
    text += '\n';
    if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Cutter {
 public:
  Cutter(std::string_view source, const std::string& file) : source_(with_plain_lines(source)), file_(file) {}

  [[nodiscard]] std::vector<Token> cut() {
    while (at_ < source_.size()) cut_data();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw InputError(file_, line_, what); }
  [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void advance(std::size_t count) {
    line_ += static_cast<int>(std::ranges::count(rest().substr(0, count), '\n'));
    at_ += count;
  }
  void skip_spaces() {
    while (at_ < source_.size() && is_space(source_[at_])) advance(1);
  }

  // The text up to the next tag, and the tag.
  void cut_data() {
    std::size_t tag = at_;
    do {
      tag = source_.find('{', tag);
    } while (tag != std::string::npos && std::string_view("{%#").find(char_at(tag + 1)) == std::string_view::npos &&
             ++tag != 0);
    std::string text = source_.substr(at_, tag == std::string::npos ? tag : tag - at_);
    if (tag == std::string::npos) {
      if (!text.empty()) add(TokenKind::data, text);
      at_ = source_.size();
      return;
    }
    const std::size_t size = text.size();
    trim_before(text, source_[tag + 1], char_at(tag + 2));
    if (!text.empty()) add(TokenKind::data, text);
    advance(size);
    cut_tag();
  }

  [[nodiscard]] char char_at(std::size_t at) const { return at < source_.size() ? source_[at] : '\0'; }

  void trim_before(std::string& text, char kind, char control) const {
    if (control == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
      return;
    }
    if (control == '+' || kind == '{') return;      // lstrip_blocks: of blocks and comments
    const std::size_t line = text.rfind('\n') + 1;  // 0 where there is none
    const bool begins_line = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
    if (begins_line && text.find_first_not_of(" \t", line) == std::string::npos) text.resize(line);
  }

  void cut_tag() {
    const char kind = source_[at_ + 1];
    const int line = line_;
    advance(2);
    if (char_at(at_) == '-' || (char_at(at_) == '+' && kind != '{')) advance(1);
    if (kind == '#') return skip_comment(line);
    add(kind == '{' ? TokenKind::output_begin : TokenKind::block_begin, "");
    const std::string_view close = kind == '{' ? "}}" : "%}";
    for (std::vector<char> open;;) {
      skip_spaces();
      if (at_ >= source_.size()) {
        line_ = line;
        refuse("the tag that begins here is not closed");
      }
      if (open.empty() && close_tag(close, kind == '{' ? TokenKind::output_end : TokenKind::block_end)) return;
      cut_token(open);
    }
  }

  // trim_blocks: the line that a block ends goes with it.
  [[nodiscard]] bool close_tag(std::string_view close, TokenKind end) {
    const bool has_control = rest().size() > close.size() && rest().substr(1).starts_with(close) &&
                             (rest()[0] == '-' || (rest()[0] == '+' && end == TokenKind::block_end));
    if (!has_control && !rest().starts_with(close)) return false;
    add(end, "");
    const char control = has_control ? rest()[0] : '\0';
    advance(close.size() + (has_control ? 1 : 0));
    trim_after(control, end == TokenKind::block_end);
    return true;
  }

  void trim_after(char control, bool takes_line) {
    if (control == '-') return skip_spaces();
    if (control != '+' && takes_line && char_at(at_) == '\n') advance(1);
  }

  void skip_comment(int line) {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) {
      line_ = line;
      refuse("the comment that begins here is not closed");
    }
    const char control = end > at_ ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    trim_after(control == '-' || control == '+' ? control : '\0', true);
  }

  void cut_token(std::vector<char>& open) {
    const char first = source_[at_];
    if (begins_name(first)) {
      std::size_t end = at_;
      while (begins_name(char_at(end)) || is_digit(char_at(end))) ++end;
      add(TokenKind::name, source_.substr(at_, end - at_));
      return advance(end - at_);
    }
    if (is_digit(first)) return cut_number();
    if (first == '"' || first == '\'') return cut_text(first);
    cut_sign(open);
  }

  void cut_number() {
    std::size_t end = at_;
    while (is_digit(char_at(end)) || char_at(end) == '_') ++end;
    TokenKind kind = TokenKind::integer;
    if (char_at(end) == '.' && is_digit(char_at(end + 1))) {
      kind = TokenKind::real;
      for (++end; is_digit(char_at(end));) ++end;
    }
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    add(kind, digits);
    advance(end - at_);
  }

  void cut_text(char quote) {
    const int line = line_;
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) refuse("the text that begins here is not closed");
    const std::string written = source_.substr(at_ + 1, end - at_ - 1);
    add(TokenKind::text, resolved(written));
    tokens_.back().line = line;
    advance(end + 1 - at_);
  }

  [[nodiscard]] std::string resolved(std::string_view written) const {
    std::string text;
    for (std::size_t at = 0; at < written.size(); ++at) {
      if (written[at] != '\\') {
        text += written[at];
        continue;
      }
      constexpr std::string_view kEscapes = "ntrbfv\\'\"", kMeant = "\n\t\r\b\f\v\\'\"";
      const char escape = written[++at];
      if (const std::size_t known = kEscapes.find(escape); known != std::string_view::npos)
        text += kMeant[known];
      else if (escape == 'x' || escape == 'u')
        at += append_code(text, written.substr(at + 1, escape == 'x' ? 2 : 4));
      else if (escape != '\n')
        text += {'\\', escape};
    }
    return text;
  }

  // Returns how many digits there were.
  [[nodiscard]] std::size_t append_code(std::string& text, std::string_view digits) const {
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || end != digits.data() + digits.size() || (code >= 0xD800 && code < 0xE000))
      refuse("\\x needs two digits and \\u four, of a character; not " + in_quotes(std::string(digits)));
    append_character(text, code);
    return digits.size();
  }

  void cut_sign(std::vector<char>& open) {
    constexpr std::array<std::string_view, 24> kSigns = {"//", "**", "==", "!=", "<=", ">=", "+", "-",
                                                         "*",  "/",  "%",  "~",  "<",  ">",  "=", ".",
                                                         ",",  ":",  "|",  "(",  ")",  "[",  "]", "{"};
    const auto sign = std::ranges::find_if(kSigns, [this](std::string_view each) { return rest().starts_with(each); });
    const std::string_view found = sign != kSigns.end() ? *sign : rest().starts_with("}") ? "}" : "";
    if (found.empty()) {
      const std::size_t size = first_unit(rest()).size;
      refuse("no expression has " + in_quotes(std::string(rest().substr(0, size))));
    }
    if (found == "(" || found == "[" || found == "{") open.push_back(found[0]);
    if (found == ")" || found == "]" || found == "}") {
      const std::size_t pair = std::string_view(")]}").find(found[0]);
      if (open.empty() || open.back() != "([{"[pair]) refuse(in_quotes(std::string(found)) + " closes nothing");
      open.pop_back();
    }
    add(TokenKind::sign, std::string(found));
    advance(found.size());
  }

  std::string source_;
  const std::string& file_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, const std::string& file) { return Cutter(source, file).cut(); }

}  // namespace dculab::engine::chat
