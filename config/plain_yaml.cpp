#include "config/plain_yaml.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "fields/node_builder.hpp"
#include "fields/utf8.hpp"

namespace dculab::config {
namespace {

// A line without its indentation and its comment; lines of an open bracket are one.
struct Line {
  int number = 0;
  std::size_t indent = 0;
  std::string text;
};

[[nodiscard]] std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\t')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

// Visits the characters that are outside of quotes; `visit` returns whether to go on.
template <class Visit>
void outside_quotes(std::string_view text, Visit visit) {
  char quote = '\0';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (quote == '"' && letter == '\\') {
      ++at;
    } else if (quote != '\0') {
      if (letter == quote) quote = '\0';
    } else if ((letter == '"' || letter == '\'') &&
               (at == 0 || std::string_view(" ,:[{").find(text[at - 1]) != std::string_view::npos)) {
      quote = letter;
    } else if (!visit(at)) {
      return;
    }
  }
}

[[nodiscard]] std::string_view without_comment(std::string_view text) {
  std::size_t end = text.size();
  outside_quotes(text, [&](std::size_t at) {
    const bool begins = text[at] == '#' && (at == 0 || text[at - 1] == ' ');
    if (begins) end = at;
    return !begins;
  });
  return text.substr(0, end);
}

[[nodiscard]] int open_brackets(std::string_view text) {
  int open = 0;
  outside_quotes(text, [&](std::size_t at) {
    open += text[at] == '{' || text[at] == '[' ? 1 : 0;
    open -= text[at] == '}' || text[at] == ']' ? 1 : 0;
    return true;
  });
  return open;
}

[[nodiscard]] std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  int open = 0;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_comment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view content = trimmed(line);
    if (content.empty()) continue;
    if (open > 0)
      lines.back().text.append(" ").append(content);
    else
      lines.push_back({number, line.find_first_not_of(' '), std::string(content)});
    open += open_brackets(content);
  }
  return lines;
}

class Reader {
 public:
  Reader(const std::string& file, std::vector<Line> lines) : file_(file), lines_(std::move(lines)), builder_(file) {}

  Node read() {
    if (lines_.empty()) return {};
    read_block(lines_.front().indent);
    if (next_ < lines_.size()) refuse("is indented less than what it belongs to, or more");
    return builder_.take();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(file_, next_ < lines_.size() ? lines_[next_].number : lines_.back().number, what);
  }
  [[nodiscard]] Place place() const { return {lines_[next_].number, 0}; }
  [[nodiscard]] bool is_item() const { return lines_[next_].text == "-" || lines_[next_].text.starts_with("- "); }
  [[nodiscard]] bool is_at(std::size_t indent) const { return next_ < lines_.size() && lines_[next_].indent == indent; }

  // Where the colon is that ends a line's key; npos: it has none.
  [[nodiscard]] static std::size_t colon_of(std::string_view text) {
    std::size_t found = std::string_view::npos;
    if (text.starts_with('{') || text.starts_with('[')) return found;
    outside_quotes(text, [&](std::size_t at) {
      const bool ends = text[at] == ':' && (at + 1 == text.size() || text[at + 1] == ' ');
      if (ends) found = at;
      return !ends;
    });
    return found;
  }

  void read_block(std::size_t indent) {
    if (is_item()) return read_items(indent);
    if (colon_of(lines_[next_].text) != std::string_view::npos) return read_map(indent);
    read_value(lines_[next_].text);
    ++next_;
  }

  void read_items(std::size_t indent) {
    builder_.open(place(), NodeKind::list);
    while (is_at(indent) && is_item()) {
      Line& line = lines_[next_];
      const std::size_t begin = std::min(line.text.find_first_not_of(' ', 1), line.text.size());
      if (begin == line.text.size()) refuse("an item begins on the line of its dash");
      line.indent += begin;
      line.text.erase(0, begin);
      read_block(line.indent);
    }
    builder_.close();
  }

  void read_map(std::size_t indent) {
    builder_.open(place(), NodeKind::map);
    while (is_at(indent) && !is_item()) {
      const std::string text = lines_[next_].text;
      const std::size_t colon = colon_of(text);
      if (colon == std::string_view::npos) refuse("has no key; texts over several lines are not read here");
      read_value(trimmed(std::string_view(text).substr(0, colon)));
      const std::string_view rest = trimmed(std::string_view(text).substr(colon + 1));
      const Place here = place();
      if (!rest.empty()) read_value(rest);
      ++next_;
      if (!rest.empty()) continue;
      const bool has_items = is_at(indent) && is_item();
      if (next_ < lines_.size() && (lines_[next_].indent > indent || has_items))
        read_block(lines_[next_].indent);
      else
        builder_.null(here);
    }
    builder_.close();
  }

  void read_value(std::string_view text) {
    rest_ = text;
    read_flow("");
    if (!trimmed(rest_).empty()) refuse("is not plain YAML behind a value");
  }

  // A value up to one of `ends`, which separate values inside brackets.
  void read_flow(std::string_view ends) {
    rest_ = trimmed(rest_);
    if (rest_.starts_with('{')) return read_brackets('}', NodeKind::map);
    if (rest_.starts_with('[')) return read_brackets(']', NodeKind::list);
    if (rest_.starts_with('"') || rest_.starts_with('\'')) return builder_.scalar(place(), quoted());
    if (!rest_.empty() && std::string_view("&*!|>%@`").find(rest_.front()) != std::string_view::npos)
      refuse("is YAML that is not read here");
    std::size_t end = ends.empty() ? rest_.size() : std::min(rest_.find_first_of(ends), rest_.size());
    if (!ends.empty()) end = std::min({end, rest_.find(": "), rest_.size()});
    const std::string_view word = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(end);
    if (word.empty() || word == "~" || word == "null")
      builder_.null(place());
    else
      builder_.scalar(place(), std::string(word));
  }

  void read_brackets(char closing, NodeKind kind) {
    builder_.open(place(), kind);
    rest_ = trimmed(rest_.substr(1));
    while (!rest_.starts_with(closing)) {
      read_flow(",]}");
      if (kind == NodeKind::map) {
        rest_ = trimmed(rest_);
        if (!rest_.starts_with(':')) refuse("has a key without a value");
        rest_.remove_prefix(1);
        read_flow(",]}");
      }
      rest_ = trimmed(rest_);
      if (rest_.starts_with(','))
        rest_ = trimmed(rest_.substr(1));
      else if (!rest_.starts_with(closing))
        refuse("has a bracket that does not close");
    }
    rest_.remove_prefix(1);
    builder_.close();
  }

  [[nodiscard]] std::string quoted() {
    const char quote = rest_.front();
    std::string text;
    for (std::size_t at = 1; at < rest_.size(); ++at) {
      const char letter = rest_[at];
      if (quote == '\'' && letter == quote && at + 1 < rest_.size() && rest_[at + 1] == quote) {
        text += quote;
        ++at;
      } else if (letter == quote) {
        rest_.remove_prefix(at + 1);
        return text;
      } else if (quote == '"' && letter == '\\' && at + 1 < rest_.size()) {
        text += escaped(++at);
      } else {
        text += letter;
      }
    }
    refuse("has a quote that does not close");
  }

  // What the escape stands for whose letter is at `at`, which moves to its end.
  [[nodiscard]] std::string escaped(std::size_t& at) const {
    static constexpr std::string_view kLetters = "\"\\/ntr0e", kMeant = {"\"\\/\n\t\r\0\x1b", 8};
    if (const std::size_t found = kLetters.find(rest_[at]); found != std::string_view::npos) return {kMeant[found]};
    const std::size_t digits = rest_[at] == 'x' ? 2 : rest_[at] == 'u' ? 4 : rest_[at] == 'U' ? 8 : 0;
    unsigned code = 0;
    const char* first = rest_.data() + at + 1;
    if (digits == 0 || at + digits >= rest_.size() ||
        std::from_chars(first, first + digits, code, 16).ptr != first + digits)
      refuse("has an escape that is not read here");
    at += digits;
    std::string text;
    append_character(text, code);
    return text;
  }

  const std::string& file_;
  std::vector<Line> lines_;
  NodeBuilder builder_;
  std::size_t next_ = 0;
  std::string_view rest_;
};

}  // namespace

Node parse_plain_yaml(const std::string& file, const std::string& text) {
  require_utf8(file, text);
  return Reader(file, lines_of(text)).read();
}

}  // namespace dculab::config
