// Assembles a Node tree from the events of a YAML or JSON parser.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "fields/node.hpp"

namespace dculab {

enum class DuplicateKeys : std::uint8_t { keep, refuse };

// What a document may be. Copies and destructors of a tree recurse, so its depth is bounded.
struct NodeRules {
  std::size_t deepest = 32;
  DuplicateKeys duplicates = DuplicateKeys::keep;  // keep: for a reader that says where the second one stands
};

// The children of the root, or of the root's member `member`, where that is a node of this kind.
struct ItemPlace {
  NodeKind kind = NodeKind::list;
  std::string member{};
};

using ItemVisitor = std::function<void(Node item)>;

// Throws InputError for nesting that is too deep, a key that stands twice, and more values than any file here has.
class NodeBuilder {
 public:
  explicit NodeBuilder(std::string file, NodeRules rules = {}) : file_(std::move(file)), rules_(rules) {}

  // Gives the nodes at `place` to `visit` one after the other, in place of keeping them.
  void stream(ItemPlace place, ItemVisitor visit) { streamed_ = std::move(place), visit_ = std::move(visit); }

  void scalar(Place place, std::string text, ScalarType type = ScalarType::word);
  void null(Place place);
  void open(Place place, NodeKind kind);
  void close();
  // For parsers that report keys apart from values.
  void key(Place place, std::string text);

  // The root. Null when there was nothing.
  [[nodiscard]] Node take();

 private:
  struct Frame {
    Node node;
    std::optional<std::string> key;  // read, its value not yet
    Place key_place;
    bool is_streamed = false;
    std::size_t num_values = 0;  // kept when it was opened
    std::unordered_set<std::string> streamed_keys;
  };
  void add(Node node);
  void count_value(Place place);
  [[nodiscard]] bool is_streamed(NodeKind kind) const;
  void refuse_second_stream(Place place) const;
  void refuse_duplicates(const Node& map) const;
  [[noreturn]] void refuse_duplicate(const Node& child) const;

  std::string file_;
  NodeRules rules_;
  ItemPlace streamed_;
  ItemVisitor visit_;
  std::vector<Frame> open_;
  std::size_t num_values_ = 0;  // that are kept
  Node root_;
};

}  // namespace dculab
