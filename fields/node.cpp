#include "fields/node.hpp"

#include <utility>

namespace dculab {

const Node* Node::find(std::string_view wanted_key) const {
  if (kind != NodeKind::map) return nullptr;
  for (const Node& child : children)
    if (child.key == wanted_key) return &child;
  return nullptr;
}

Node* Node::find(std::string_view wanted_key) {
  return const_cast<Node*>(static_cast<const Node&>(*this).find(wanted_key));
}

void set_member(Node& map, std::string_view key, Node value) {
  value.key = key;
  if (Node* present = map.find(key))
    *present = std::move(value);
  else
    map.children.push_back(std::move(value));
}

Node as_words(Node document) {
  document.type = ScalarType::word;
  document.place = document.key_place = {};
  for (Node& child : document.children) child = as_words(std::move(child));
  return document;
}

}  // namespace dculab
