#include "config/json_documents.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "fields/json_text.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// Steps through JSON, piece by piece: a string, a bracket, or one other character.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] int depth() const { return depth_; }

  // The next piece, behind which at() stands and depth() is.
  std::string_view next() {
    const std::size_t begin = at_;
    const char first = text_[at_++];
    if (first == '"') skip_string();
    if (first == '{' || first == '[') ++depth_;
    if (first == '}' || first == ']') --depth_;
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip_string() {
    while (!at_end() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// The length of the document that `text` begins with, a space before it included.
[[nodiscard]] std::size_t document_length(std::string_view text) {
  Scanner scanner(text);
  while (!scanner.at_end()) {
    const std::string_view piece = scanner.next();
    if (scanner.depth() <= 0 && (piece == "}" || piece == "]")) break;
  }
  return scanner.at();
}

[[nodiscard]] std::string as_json(std::string_view python) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"-Infinity", "\"-inf\""}, {"Infinity", "\"inf\""}, {"NaN", "null"}};
  std::string json;
  json.reserve(python.size());
  for (Scanner scanner(python); !scanner.at_end();) {
    const std::string_view rest = python.substr(scanner.at());
    const auto* word = std::ranges::find_if(kWords, [&](const auto& each) { return rest.starts_with(each.first); });
    if (word == std::end(kWords)) {
      json += scanner.next();
      continue;
    }
    json += word->second;
    for (std::size_t left = word->first.size(); left > 0; --left) scanner.next();
  }
  return json;
}

}  // namespace

std::vector<Node> json_documents(const std::string& file, std::string_view text) {
  std::vector<Node> documents;
  int line = 1;
  const auto step = [&](std::size_t length) {
    line += static_cast<int>(std::ranges::count(text.substr(0, length), '\n'));
    text.remove_prefix(length);
  };
  if (text.starts_with("\xEF\xBB\xBF")) step(3);
  while (true) {
    step(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) break;
    const std::size_t length = document_length(text);
    documents.push_back(parse_json(file, line, as_json(text.substr(0, length))));
    step(length);
  }
  if (documents.empty()) throw InputError(file, "is empty");
  return documents;
}

std::vector<std::string_view> first_keys(std::string_view text) {
  std::vector<std::string_view> keys;
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) return keys;
  const int depth = text[begin] == '{' ? 1 : 2;
  std::string_view string;
  for (Scanner scanner(text.substr(begin)); !scanner.at_end();) {
    const std::string_view piece = scanner.next();
    if (piece.starts_with('"')) string = piece;
    if (piece == ":" && scanner.depth() == depth && string.size() > 1)
      keys.push_back(string.substr(1, string.size() - 2));
    if (scanner.depth() < depth && (piece == "}" || piece == "]")) break;
  }
  return keys;
}

}  // namespace dculab::config
