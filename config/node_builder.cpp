#include "config/node_builder.hpp"

#include <utility>

#include "core/error.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kDeepest = 32;

}  // namespace

void NodeBuilder::scalar(Place place, std::string text) {
  Node node;
  node.kind = NodeKind::scalar;
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
  if (open_.size() >= kDeepest) throw InputError(file_, place.line, "nested deeper than 32 levels; flatten the file");
  const bool is_key = !open_.empty() && open_.back().node.kind == NodeKind::map && !open_.back().key;
  if (is_key) throw InputError(file_, place.line, "a list or map stands where a key should; is a bracket not closed?");
  Frame frame;
  frame.node.kind = kind;
  frame.node.place = place;
  open_.push_back(std::move(frame));
}

void NodeBuilder::close() {
  Node node = std::move(open_.back().node);
  open_.pop_back();
  add(std::move(node));
}

void NodeBuilder::key(Place place, std::string text) {
  open_.back().key = std::move(text);
  open_.back().key_place = place;
}

void NodeBuilder::add(Node node) {
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
  parent.node.children.push_back(std::move(node));
}

Node NodeBuilder::take() { return std::exchange(root_, Node()); }

}  // namespace dculab::config
