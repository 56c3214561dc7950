// YAML files as trees of nodes.
#pragma once

#include <string>
#include <string_view>

#include "fields/json_text.hpp"
#include "fields/node.hpp"

namespace dculab::config {

// Throws InputError for broken syntax, for what is refused on purpose (anchors, aliases, tags, more than one document,
// nesting deeper than 32, more than 1 MiB), and never anything else. `file` is for messages.
[[nodiscard]] Node parse_yaml(const std::string& file, const std::string& text);

[[nodiscard]] Node read_yaml_file(const std::string& path);

}  // namespace dculab::config
