// Reads what a scenario searches for: its objective, Pareto aims and constraints.
#pragma once

#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

// {maximize: tokens_per_second, subject_to: {step_time: "<= 50 ms"}}; nothing where it is not there.
void read_objective(MapReader reader, Objective& objective);

// {minimize: [step_time, kv_bytes], maximize: [max_sequences]}
void read_pareto(MapReader reader, std::vector<Aim>& aims);

// Their keys.
[[nodiscard]] std::vector<FileKey> objective_keys();
[[nodiscard]] std::vector<FileKey> pareto_keys();

// `constraints` of the document. The scenario's sweep must have been read.
void read_constraints(Scenario& scenario, const Node& document, ProblemList& problems);

}  // namespace dculab::config
