#include "config/scenario_document.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "config/yaml_text.hpp"
#include "core/error.hpp"

namespace dculab::config {
namespace {

// That are a name, or a map with one.
[[nodiscard]] bool is_named(std::string_view key) { return key == "model" || key == "machine" || key == "stack"; }

// The parts of a dotted key; after "sweep.", "machine." and "stack." the rest is one key.
std::vector<std::string_view> split_key(std::string_view key) {
  constexpr std::size_t kUsualParts = 4;
  for (const std::string_view whole : {"sweep.", "machine.", "stack."})
    if (key.starts_with(whole)) return {key.substr(0, whole.size() - 1), key.substr(whole.size())};
  std::vector<std::string_view> parts;
  parts.reserve(kUsualParts);
  for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    parts.push_back(key.substr(0, dot));
    key.remove_prefix(dot + 1);
  }
  parts.push_back(key);
  return parts;
}

// The child under `part`, which becomes a map if it is not one yet.
Node& enter(Node& map, std::string_view part, const Node& value) {
  Node* child = map.find(part);
  if (child == nullptr) {
    child = &map.children.emplace_back();
    child->kind = NodeKind::map;
    child->key = part;
    child->place = child->key_place = value.key_place;
    child->origin = value.origin;
  } else if (is_named(part) && child->kind == NodeKind::scalar) {
    Node name = *child;
    name.key = "name";
    child->kind = NodeKind::map;
    child->children = {std::move(name)};
  }
  return *child;
}

}  // namespace

void erase_key(Node& map, std::string_view key) {
  std::erase_if(map.children, [key](const Node& child) { return child.key == key; });
}

void set_key(Node& document, const std::string& key, Node value) {
  const std::vector<std::string_view> parts = split_key(key);
  Node* map = &document;
  for (std::size_t index = 0; index + 1 < parts.size() && map->kind == NodeKind::map; ++index)
    map = &enter(*map, parts[index], value);
  if (map->kind != NodeKind::map) throw InputError(value.origin, key + ": what it belongs to has no keys");
  Node* target = map->find(parts.back());
  if (key == "machine") erase_key(document, "machines");
  // Another model keeps the changes to its shape, another machine and another stack those to their figures.
  if (is_named(key) && value.kind == NodeKind::scalar && target != nullptr && target->kind == NodeKind::map)
    return set_key(document, key + ".name", std::move(value));
  value.key = parts.back();
  if (target != nullptr)
    *target = std::move(value);
  else
    map->children.push_back(std::move(value));
}

const Node* find_key(const Node& document, const std::string& key) {
  const Node* node = &document;
  for (const std::string_view part : split_key(key)) {
    node = node->find(part);
    if (node == nullptr) return nullptr;
  }
  return is_named(key) && node->kind == NodeKind::map ? node->find("name") : node;
}

void stop_sweeping(Node& document, const std::string& key) {
  Node* sweep = document.find("sweep");
  if (sweep == nullptr) return;
  erase_key(*sweep, key);
  if (sweep->kind == NodeKind::map && sweep->children.empty()) erase_key(document, "sweep");
}

Node parse_value(const std::string& origin, const std::string& text) {
  Node value = parse_yaml(origin, text);
  value.place = {};
  value.origin = origin;
  for (Node& child : value.children) {
    child.place = child.key_place = {};
    child.origin = origin;
  }
  return value;
}

}  // namespace dculab::config
