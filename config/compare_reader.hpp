// Reads what a scenario is held against: variants with what was published about them, and measured accuracy.
#pragma once

#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

// `compare` and `accuracy` of the document, when it has them. The scenario's sweep must have been read.
void read_compare(Scenario& scenario, const Node& document, ProblemList& problems);

}  // namespace dculab::config
