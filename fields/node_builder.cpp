#include "fields/node_builder.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab {
namespace {

// The largest tokenizer.json known has two million; a value costs some 150 bytes.
constexpr std::size_t kMostValues = 4'000'000;
constexpr std::size_t kFewKeys = 8;  // fewer are compared with each other sooner than hashed

}  // namespace

void NodeBuilder::scalar(Place place, std::string text, ScalarType type) {
  Node node;
  node.kind = NodeKind::scalar;
  node.type = type;
  node.text = std::move(text);
  node.place = place;
  add(std::move(node));
}

void NodeBuilder::null(Place place) {
  Node node;
  node.place = place;
  add(std::move(node));
}

void NodeBuilder::open(Place place, NodeKind kind) {
  if (open_.size() >= rules_.deepest)
    throw InputError(file_, place.line,
                     "nested deeper than " + std::to_string(rules_.deepest) + " levels; flatten the file");
  const bool is_key = !open_.empty() && open_.back().node.kind == NodeKind::map && !open_.back().key;
  if (is_key) throw InputError(file_, place.line, "a list or map stands where a key should; is a bracket not closed?");
  Frame frame;
  frame.node.kind = kind;
  frame.node.place = place;
  frame.is_streamed = is_streamed(kind);
  frame.num_values = num_values_;
  if (frame.is_streamed && !open_.empty()) refuse_second_stream(place);
  open_.push_back(std::move(frame));
}

bool NodeBuilder::is_streamed(NodeKind kind) const {
  if (!visit_ || kind != streamed_.kind) return false;
  if (streamed_.member.empty()) return open_.empty();
  return open_.size() == 1 && open_.back().key == streamed_.member;
}

// Its items would be visited before the duplicate is found.
void NodeBuilder::refuse_second_stream(Place place) const {
  Node again;
  again.key = streamed_.member;
  again.key_place = place;
  if (open_.back().node.find(streamed_.member) != nullptr) refuse_duplicate(again);
}

void NodeBuilder::close() {
  Node node = std::move(open_.back().node);
  open_.pop_back();
  if (node.kind == NodeKind::map && rules_.duplicates == DuplicateKeys::refuse) refuse_duplicates(node);
  add(std::move(node));
}

void NodeBuilder::key(Place place, std::string text) {
  Frame& frame = open_.back();
  frame.key = std::move(text);
  frame.key_place = place;
}

void NodeBuilder::count_value(Place place) {
  if (++num_values_ > kMostValues)
    throw InputError(file_, place.line, "holds more than 4,000,000 values in one; is it the right file?");
}

void NodeBuilder::add(Node node) {
  count_value(node.place);
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  Frame& parent = open_.back();
  if (parent.node.kind == NodeKind::map) {
    if (!parent.key) return key(node.place, std::move(node.text));
    node.key = std::move(*parent.key);
    node.key_place = parent.key_place;
    parent.key.reset();
  }
  if (!parent.is_streamed) {
    parent.node.children.push_back(std::move(node));
    return;
  }
  const bool refuses = parent.node.kind == NodeKind::map && rules_.duplicates == DuplicateKeys::refuse;
  if (refuses && !parent.streamed_keys.insert(node.key).second) refuse_duplicate(node);
  num_values_ = parent.num_values;
  visit_(std::move(node));
}

void NodeBuilder::refuse_duplicates(const Node& map) const {
  const std::vector<Node>& children = map.children;
  if (children.size() <= kFewKeys) {
    for (auto child = children.begin(); child != children.end(); ++child)
      if (std::any_of(children.begin(), child, [&](const Node& other) { return other.key == child->key; }))
        refuse_duplicate(*child);
    return;
  }
  std::unordered_set<std::string_view> keys;
  keys.reserve(children.size());
  for (const Node& child : children)
    if (!keys.insert(child.key).second) refuse_duplicate(child);
}

void NodeBuilder::refuse_duplicate(const Node& child) const {
  throw InputError(file_, child.key_place.line, "key " + in_quotes(child.key) + " stands twice in one JSON object");
}

Node NodeBuilder::take() { return std::exchange(root_, Node()); }

}  // namespace dculab
