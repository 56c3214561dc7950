// A YAML or JSON document as it was written: texts and their places, before anybody asks what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dculab {

// One-based; 0 = not known.
struct Place {
  int line = 0;
  int column = 0;
};

enum class NodeKind : std::uint8_t { null, scalar, list, map };

// What a scalar was written as. YAML's are words: what a word means, its reader decides.
enum class ScalarType : std::uint8_t { word, text, integer, real, flag };

struct Node {
  NodeKind kind = NodeKind::null;
  ScalarType type = ScalarType::word;
  std::string text;  // of a scalar
  std::vector<Node>
      children;     // of a list or a map, in order; a map of YAML keeps duplicate keys for its reader to refuse
  std::string key;  // inside a map
  Place key_place;
  Place place;
  std::string origin;  // "--set key=value" when it does not come from the file

  // The first child of a map with this key, or null.
  [[nodiscard]] const Node* find(std::string_view wanted_key) const;
  [[nodiscard]] Node* find(std::string_view wanted_key);

  [[nodiscard]] bool is(ScalarType wanted) const { return kind == NodeKind::scalar && type == wanted; }
};

// Puts `value` into a map under `key`, in place of what is there.
void set_member(Node& map, std::string_view key, Node value);

// A document of JSON as YAML would have it: every scalar a word, at no place.
[[nodiscard]] Node as_words(Node document);

}  // namespace dculab
