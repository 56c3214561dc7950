// Assembles a Node tree from the events of a YAML or JSON parser.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/node.hpp"

namespace dculab::config {

class NodeBuilder {
 public:
  explicit NodeBuilder(std::string file) : file_(std::move(file)) {}

  void scalar(Place place, std::string text);
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
  };
  void add(Node node);

  std::string file_;
  std::vector<Frame> open_;
  Node root_;
};

}  // namespace dculab::config
