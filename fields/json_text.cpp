// The only file that reads JSON, and writes that of a document. It listens to the events of the parser, which neither
// recurses nor keeps anything.
#include "fields/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fields/printable_text.hpp"

namespace dculab {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostItemBytes = std::size_t{1} << 28;  // of a stream; a whole tokenizer.json has a tenth of that

// Bytes of a text that comes in pieces, and the line that the last of them stands on.
class ByteSource {
 public:
  ByteSource(const std::string& file, int line, NextPiece next_piece)
      : file_(file), line_(line), next_piece_(std::move(next_piece)) {}

  [[nodiscard]] bool is_at_end() {
    if (!rest_.empty()) return false;
    if (!has_ended_) rest_ = next_piece_();
    if (!rest_.empty()) return false;
    has_ended_ = true;
    begin_line();
    return true;
  }
  [[nodiscard]] const char& front() const { return rest_.front(); }
  void step() {
    begin_line();
    ++num_read_;
    line_ends_ = rest_.front() == '\n';
    if (std::string_view(" \t\r\n").find(rest_.front()) == std::string_view::npos)
      last_but_one_ = std::exchange(last_, rest_.front());
    rest_.remove_prefix(1);
    if (num_read_ - item_begin_ > kMostItemBytes)
      throw InputError(file_, line_, "holds a value of more than 256 MiB; is it the right file?");
  }
  void begin_item() { item_begin_ = num_read_; }
  [[nodiscard]] Place place() const { return {line_, 0}; }
  // Of the bytes read that are no spaces.
  [[nodiscard]] char last() const { return last_; }
  [[nodiscard]] char last_but_one() const { return last_but_one_; }
  // `position` counts the bytes read, from 1.
  [[nodiscard]] std::size_t column(std::size_t position) const { return position - std::min(position, line_begin_); }

 private:
  void begin_line() {
    if (!std::exchange(line_ends_, false)) return;
    ++line_;
    line_begin_ = num_read_;
  }

  const std::string& file_;
  int line_;
  NextPiece next_piece_;
  std::string_view rest_;
  std::size_t num_read_ = 0, line_begin_ = 0, item_begin_ = 0;
  char last_ = '\0', last_but_one_ = '\0';
  bool line_ends_ = false;  // with the last byte read
  bool has_ended_ = false;
};

class ByteIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  ByteIterator() = default;  // the end
  explicit ByteIterator(ByteSource& source) : source_(&source) {}

  reference operator*() const { return source_->front(); }
  ByteIterator& operator++() {
    source_->step();
    return *this;
  }
  // Only ever compared with the end.
  bool operator==(const ByteIterator& /*end*/) const { return source_ == nullptr || source_->is_at_end(); }

 private:
  ByteSource* source_ = nullptr;
};

// "[json.exception.parse_error.101] parse error at line 1, column 9: the reason", or without "...: ".
std::string reason_of(std::string what) {
  for (const std::string_view before : {"] ", ": "}) {
    const std::size_t found = what.find(before);
    if (found != std::string::npos && (before != ": " || what.starts_with("parse error")))
      what.erase(0, found + before.size());
  }
  return shortened(what);
}

// What JSON does not have and people write; empty for other faults. `before`, `last`: of the bytes read that are no
// spaces, the last two.
std::string slip(char before, char last) {
  if (before == ',' && (last == '}' || last == ']'))
    return std::string("a comma stands before '") + last + "'; remove it";
  if (last == '/' || last == '#') return "JSON has no comments; remove it";
  if (last == '\'') return "names and texts stand in double quotes";
  return "";
}

class JsonEvents final : public nlohmann::json_sax<Json> {
 public:
  JsonEvents(const std::string& file, ByteSource& source, NodeBuilder& builder)
      : file_(file), source_(source), builder_(builder) {}

  bool null() override { return builder_.null(source_.place()), true; }
  bool boolean(bool value) override { return scalar(value ? "true" : "false", ScalarType::flag); }
  bool number_integer(number_integer_t value) override { return scalar(std::to_string(value), ScalarType::integer); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(std::to_string(value), ScalarType::integer); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return scalar(text, ScalarType::real); }
  bool string(string_t& value) override { return scalar(std::move(value), ScalarType::text); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return builder_.open(source_.place(), NodeKind::map), true; }
  bool key(string_t& value) override { return builder_.key(source_.place(), std::move(value)), true; }
  bool end_object() override { return builder_.close(), true; }
  bool start_array(std::size_t /*size*/) override { return builder_.open(source_.place(), NodeKind::list), true; }
  bool end_array() override { return builder_.close(), true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string common = slip(source_.last_but_one(), source_.last());
    throw JsonSyntaxError(file_ + ":" + std::to_string(source_.place().line) + ":" +
                          std::to_string(source_.column(position)) + ": is not valid JSON (" +
                          (common.empty() ? reason_of(error.what()) : common) + ")");
  }

 private:
  bool scalar(std::string text, ScalarType type) {
    builder_.scalar(source_.place(), std::move(text), type);
    return true;
  }

  const std::string& file_;
  ByteSource& source_;
  NodeBuilder& builder_;
};

Node read(const std::string& file, ByteSource& source, NodeBuilder& builder) {
  JsonEvents events(file, source, builder);
  Json::sax_parse(ByteIterator(source), ByteIterator(), &events);
  return builder.take();
}

NodeBuilder make_builder(const std::string& file) {
  return NodeBuilder(file, {.deepest = kDeepest, .duplicates = DuplicateKeys::refuse});
}

template <class T>
T parsed(const std::string& text) {
  T value{};  // what is too small for a double is zero
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Json scalar_json(const Node& node) {
  if (node.type == ScalarType::flag) return node.text == "true";
  if (node.type == ScalarType::real) return number_of(node);
  if (node.type != ScalarType::integer) return node.text;
  if (node.text.starts_with('-')) return parsed<std::int64_t>(node.text);
  return parsed<std::uint64_t>(node.text);
}

std::string text_of(const Json& scalar) { return scalar.dump(-1, ' ', false, Json::error_handler_t::replace); }

// What is to be written of a list or a map: where a key stands twice, its last value in its first place.
std::vector<const Node*> children_of(const Node& node) {
  std::vector<const Node*> children;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const Node& child : node.children) {
    const bool is_first = node.kind == NodeKind::list || places.emplace(child.key, children.size()).second;
    if (is_first)
      children.push_back(&child);
    else
      children[places.at(child.key)] = &child;
  }
  return children;
}

class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  void write(const Node& node, int level = 0) {
    if (node.kind == NodeKind::null)
      text_ += "null";
    else if (node.kind == NodeKind::scalar)
      text_ += text_of(scalar_json(node));
    else
      write_children(node, level);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void write_children(const Node& node, int level) {
    const bool is_map = node.kind == NodeKind::map;
    const std::vector<const Node*> children = children_of(node);
    text_ += is_map ? '{' : '[';
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (i > 0) text_ += ',';
      begin_line(level + 1);
      if (is_map) text_ += text_of(children[i]->key) + (indent_ < 0 ? ":" : ": ");
      write(*children[i], level + 1);
    }
    if (!children.empty()) begin_line(level);
    text_ += is_map ? '}' : ']';
  }
  void begin_line(int level) {
    if (indent_ >= 0) text_.append(1, '\n').append(static_cast<std::size_t>(indent_ * level), ' ');
  }

  int indent_;  // negative: all on one line
  std::string text_;
};

}  // namespace

NextPiece one_piece(std::string_view text) {
  return [text]() mutable { return std::exchange(text, {}); };
}

Node parse_json(const std::string& file, int line, std::string_view text) {
  NodeBuilder builder = make_builder(file);
  ByteSource source(file, line, one_piece(text));
  return read(file, source, builder);
}

Node read_json_items(const std::string& file, const NextPiece& next_piece, const ItemPlace& place,
                     const ItemVisitor& visit) {
  NodeBuilder builder = make_builder(file);
  ByteSource source(file, 1, next_piece);
  builder.stream(place, [&](Node item) {
    source.begin_item();
    visit(std::move(item));
  });
  return read(file, source, builder);
}

std::string json_text(const Node& node, int indent) {
  JsonWriter writer(indent);
  writer.write(node);
  return writer.take();
}

double number_of(const Node& node) { return parsed<double>(node.text); }

}  // namespace dculab
