// A reader of the YAML that dculab's own files are written in, without yaml-cpp, which Debian has not compiled for
// WebAssembly: maps and lists by indentation, {...} and [...], words, texts in quotes, comments. Other YAML (anchors,
// tags, texts over several lines, several documents) it refuses. Of every shipped file it makes the nodes that
// parse_yaml makes of it (tests/config/plain_yaml_test.cpp).
#pragma once

#include <string>

#include "fields/node.hpp"

namespace dculab::config {

// Places have lines and no columns. Throws InputError; `file` is for messages.
[[nodiscard]] Node parse_plain_yaml(const std::string& file, const std::string& text);

}  // namespace dculab::config
