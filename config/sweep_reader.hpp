// Reads the axes of a scenario's sweep.
#pragma once

#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

// `sweep` of the document, when it has one. Values are tried alone, so that a bad one is reported with its place before
// anything is run; of drawn axes the ends of the range.
void read_sweep(Scenario& scenario, const Node& document, ProblemList& problems);

// The keys of a range of values.
[[nodiscard]] std::vector<FileKey> axis_keys();

}  // namespace dculab::config
