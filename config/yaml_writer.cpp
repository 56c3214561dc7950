#include "config/yaml_writer.hpp"

#include <algorithm>
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

// A double-quoted YAML scalar.
[[nodiscard]] std::string yaml_quoted(std::string_view text) {
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

[[nodiscard]] bool is_plain(std::string_view key) {
  constexpr auto is_letter = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           letter == '_' || letter == '-' || letter == '.';
  };
  return !key.empty() && key.front() != '-' && key.front() != '.' && std::ranges::all_of(key, is_letter) &&
         key != "null" && key != "Null" && key != "NULL";
}

[[nodiscard]] bool holds_scalars(const Node& node) {
  return std::ranges::all_of(node.children, [](const Node& child) { return child.kind == NodeKind::scalar; });
}

class YamlText {
 public:
  // The children of a map or of a list, each on its line.
  void write_block(const Node& node, std::size_t indent) {
    for (const Node& child : node.children) {
      text_.append(indent, ' ');
      if (node.kind == NodeKind::map) {
        write_key(child);
        write_value(child, indent + 2);
      } else {
        write_item(child, indent);
      }
    }
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void write_key(const Node& node) { text_ += (is_plain(node.key) ? node.key : yaml_quoted(node.key)) + ':'; }

  void write_value(const Node& node, std::size_t indent) {
    text_ += holds_scalars(node) ? " " : "\n";
    if (!holds_scalars(node)) return write_block(node, indent);
    write_in_line(node);
    text_ += '\n';
  }

  void write_item(const Node& item, std::size_t indent) {
    text_ += '-';
    if (holds_scalars(item)) return write_value(item, indent);
    // The first child stands beside the dash.
    const std::size_t begin = text_.size();
    write_block(item, indent + 2);
    text_.erase(begin, indent + 1);
  }

  void write_in_line(const Node& node) {
    if (node.kind == NodeKind::scalar) {
      text_ += node.type == ScalarType::text ? yaml_quoted(node.text) : node.text;
      return;
    }
    const bool is_map = node.kind == NodeKind::map;
    text_ += is_map ? '{' : '[';
    for (const Node& child : node.children) {
      if (&child != &node.children.front()) text_ += ", ";
      if (is_map) write_key(child), text_ += ' ';
      write_in_line(child);
    }
    text_ += is_map ? '}' : ']';
  }

  std::string text_;
};

[[nodiscard]] Node scalar(std::string_view text, ScalarType type) {
  Node node;
  node.kind = NodeKind::scalar;
  node.type = type;
  node.text = text;
  return node;
}

[[nodiscard]] Node empty(NodeKind kind) {
  Node node;
  node.kind = kind;
  return node;
}

}  // namespace

std::string figure_text(int value) { return std::to_string(value); }

std::string figure_text(double value) {
  std::array<char, 64> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

Node word_node(std::string_view word) { return scalar(word, ScalarType::word); }
Node text_node(std::string_view text) { return scalar(text, ScalarType::text); }
Node map_node() { return empty(NodeKind::map); }
Node list_node() { return empty(NodeKind::list); }

void add(Node& map, std::string_view key, Node value) {
  value.key = key;
  map.children.push_back(std::move(value));
}

void add_if_any(Node& map, std::string_view key, Node value) {
  if (!value.children.empty()) add(map, key, std::move(value));
}

std::string yaml_of(const Node& map) {
  YamlText text;
  text.write_block(map, 0);
  return text.take();
}

}  // namespace dculab::config
