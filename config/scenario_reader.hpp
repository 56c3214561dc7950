// Reads a scenario's document section by section, without looking at its sweep.
#pragma once

#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

// Fills `scenario` from its document and reports what is wrong with it.
void read_sections(Scenario& scenario, const Node& document, ProblemList& problems);

// Only what the document says about the engine, onto `options`.
void read_options(const Node& document, EngineOptions& options, ProblemList& problems);

}  // namespace dculab::config
