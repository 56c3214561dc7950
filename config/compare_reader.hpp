// Reads what a scenario is held against: variants with what was published about them, and measured accuracy.
#pragma once

#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

// `compare` and `accuracy` of the document, when it has them. The scenario's sweep must have been read.
void read_compare(Scenario& scenario, const Node& document, ProblemList& problems);

// Their keys. `settings` is a map of dotted keys of a scenario.
[[nodiscard]] std::vector<FileKey> compare_keys(const FileKey& settings);
[[nodiscard]] std::vector<FileKey> accuracy_keys();

}  // namespace dculab::config
