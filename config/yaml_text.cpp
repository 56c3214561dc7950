// The only file that knows yaml-cpp. It listens to the parser's events instead of building YAML::Node, because that
// hides duplicate keys, expands aliases and forgets where a key stood.
#include "config/yaml_text.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "config/file_kind.hpp"
#include "core/error.hpp"
#include "fields/node_builder.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestYaml = 1 << 20;

Place place_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

constexpr std::string_view kQuotes = "'\"";

// Where the quote at `open` ends; npos where nothing closes it. A backslash escapes a double quote, a second quote a
// single one.
std::size_t closing_quote(std::string_view text, std::size_t open) {
  const char quote = text[open];
  for (std::size_t at = open + 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\')
      ++at;
    else if (text[at] == quote && quote == '\'' && text.substr(at + 1).starts_with(quote))
      ++at;
    else if (text[at] == quote)
      return at;
  }
  return std::string_view::npos;
}

// Where the first value of the line begins that is quoted; npos where none is.
std::size_t quoted_value(std::string_view line) {
  for (std::size_t at = line.find_first_of(kQuotes); at != std::string_view::npos;
       at = line.find_first_of(kQuotes, at)) {
    const std::size_t before = line.find_last_not_of(' ', at == 0 ? at : at - 1);
    if (at == 0 || before == std::string_view::npos || std::string_view(":-[{,").find(line[before]) < 5) return at;
    ++at;
  }
  return std::string_view::npos;
}

// What yaml-cpp stumbles over often lies before the place that it names.
[[noreturn]] void refuse_syntax(const std::string& file, std::string_view text, const YAML::Exception& error) {
  const int last = error.mark.line + 1;
  std::size_t begin = 0;
  for (int line = 1; line <= last && begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content = text.substr(begin, end - begin);
    if (content.substr(0, content.find_first_not_of(" \t")).find('\t') != std::string_view::npos)
      throw InputError(file, line, "a tab stands in the indentation, which YAML does not allow; use spaces");
    if (const std::size_t quote = quoted_value(content); quote != std::string_view::npos) {
      const std::size_t close = std::min(closing_quote(text, begin + quote), text.size());
      const auto lines = static_cast<int>(std::ranges::count(text.substr(begin, close - begin), '\n'));
      if (lines > 0 && line + lines >= last)
        throw InputError(file, line, "a quote that begins here is not closed in this line; close it");
    }
    begin = end + 1;
  }
  throw InputError(file, last, "not valid YAML: " + error.msg);
}

class YamlEvents final : public YAML::EventHandler {
 public:
  YamlEvents(const std::string& file, std::string_view text, NodeBuilder& builder)
      : file_(file), text_(text), builder_(builder) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_extras(mark, "?", anchor);
    builder_.null(place_of(mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { refuse_anchor(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_extras(mark, tag, anchor);
    refuse_open_quote(mark);
    if (valid_prefix(value) != value.size())  // yaml-cpp makes a lone byte of the escapes \N and \_
      throw InputError(file_, mark.line + 1, "an escape such as \\N stands for no text here; write \\x85");
    builder_.scalar(place_of(mark), value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    refuse_extras(mark, tag, anchor);
    builder_.open(place_of(mark), NodeKind::list);
  }
  void OnSequenceEnd() override { builder_.close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    refuse_extras(mark, tag, anchor);
    builder_.open(place_of(mark), NodeKind::map);
  }
  void OnMapEnd() override { builder_.close(); }

 private:
  // yaml-cpp takes the end of the file for the end of the quote.
  void refuse_open_quote(const YAML::Mark& mark) const {
    const std::size_t at = static_cast<std::size_t>(mark.pos) + (text_.starts_with("\xEF\xBB\xBF") ? 3 : 0);
    if (at < text_.size() && kQuotes.find(text_[at]) != std::string_view::npos &&
        closing_quote(text_, at) == std::string_view::npos)
      throw InputError(file_, mark.line + 1, "the quote that begins here is not closed; close it");
  }
  // "?" and "!" are what the parser itself gives to plain and to quoted values.
  void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) refuse_anchor(mark);
    if (!tag.empty() && tag != "?" && tag != "!")
      throw InputError(file_, mark.line + 1, "tags such as " + in_quotes(tag) + " are not used here; remove it");
  }
  [[noreturn]] void refuse_anchor(const YAML::Mark& mark) const {
    throw InputError(file_, mark.line + 1, "anchors and aliases are not used here; write the value out");
  }

  const std::string& file_;
  std::string_view text_;
  NodeBuilder& builder_;
};

// yaml-cpp takes some control characters for the end of the file.
void refuse_control_characters(const std::string& file, const std::string& text) {
  int line = 1;
  for (const char letter : text) {
    if (letter == '\n') ++line;
    const auto code = static_cast<unsigned char>(letter);
    if ((code < 0x20 && letter != '\n' && letter != '\r' && letter != '\t'))
      throw InputError(file, line, "not a text file (byte " + std::to_string(code) + "); save it as UTF-8");
  }
}

}  // namespace

Node parse_yaml(const std::string& file, const std::string& text) {
  if (text.size() > kLargestYaml) throw InputError(file, "is larger than 1 MiB; is it the right file?");
  refuse_control_characters(file, text);
  require_utf8(file, text);
  NodeBuilder builder(file);
  YamlEvents events(file, text, builder);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(events)) return {};
    Node root = builder.take();
    if (parser.HandleNextDocument(events)) throw InputError(file, "holds more than one document; keep the first");
    return root;
  } catch (const YAML::Exception& error) {
    refuse_syntax(file, text, error);
  }
}

Node read_yaml_file(const std::string& path) {
  const std::string text = files::read_text(path, kLargestYaml);
  refuse_other_format(path, text);
  return parse_yaml(path, text);
}

}  // namespace dculab::config
