// The rows of a CSV file as maps, so that the strict reader serves CSV too.
#pragma once

#include <string>
#include <vector>

#include "config/map_reader.hpp"
#include "fields/node.hpp"

namespace dculab::config {

// One map per row, keyed by the first line's columns; empty cells are absent keys. Rows that have too few or too many
// cells are reported. Throws InputError when there is no first line, or the text is not UTF-8.
[[nodiscard]] std::vector<Node> csv_rows(const std::string& file, const std::string& text, ProblemList& problems);

}  // namespace dculab::config
