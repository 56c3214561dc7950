// A YAML or JSON document as it was written: texts and their places, before anybody asks what they mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dculab::config {

// One-based; 0 = not known.
struct Place {
  int line = 0;
  int column = 0;
};

enum class NodeKind { null, scalar, list, map };

struct Node {
  NodeKind kind = NodeKind::null;
  std::string text;            // of a scalar
  std::vector<Node> children;  // of a list or a map, in order; a map keeps duplicate keys for the reader to refuse
  std::string key;             // inside a map
  Place key_place;
  Place place;
  std::string origin;  // "--set key=value" when it does not come from the file

  [[nodiscard]] const Node* find(std::string_view wanted_key) const;
  [[nodiscard]] Node* find(std::string_view wanted_key);
};

// Both throw InputError for broken syntax, for what is refused on purpose (anchors, aliases, tags, more than one
// document, nesting deeper than 32, more than 1 MiB of YAML), and never anything else. `file` is for messages.
[[nodiscard]] Node parse_yaml(const std::string& file, const std::string& text);
[[nodiscard]] Node parse_json(const std::string& file, int line, const std::string& text);

// JSON that parse_json reads as the same document, its places aside. One line.
[[nodiscard]] std::string node_json(const Node& node);

// The whole file. Throws InputError when it cannot be read or is larger than `limit` bytes.
[[nodiscard]] std::string read_text_file(const std::string& path, std::size_t limit);
[[nodiscard]] Node read_yaml_file(const std::string& path);

}  // namespace dculab::config
