// Machine and stack files as they are written: nodes, of which YAML is made that is read back as it was.
#pragma once

#include <string>
#include <string_view>

#include "config/unit_text.hpp"
#include "fields/node.hpp"

namespace dculab::config {

[[nodiscard]] std::string figure_text(int value);
[[nodiscard]] std::string figure_text(double value);

template <int B, int S, int F, int C, int J>
[[nodiscard]] std::string figure_text(Quantity<B, S, F, C, J> value) {
  return exact_text(value);
}

// A scalar that YAML has as it is: a number, a word of ours.
[[nodiscard]] Node word_node(std::string_view word);
// A scalar that YAML has in double quotes: a name, a sentence.
[[nodiscard]] Node text_node(std::string_view text);
[[nodiscard]] Node map_node();
[[nodiscard]] Node list_node();

// At the end of a map.
void add(Node& map, std::string_view key, Node value);
// The same for a map or a list, unless there is nothing in it.
void add_if_any(Node& map, std::string_view key, Node value);

// A map or a list of scalars in one line, any other in a block. Keys are quoted where they are no plain words.
[[nodiscard]] std::string yaml_of(const Node& map);

}  // namespace dculab::config
