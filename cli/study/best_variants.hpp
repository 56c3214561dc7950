// Which variant of a comparison is the best at each workload, whatever else is swept being at its best.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/study/reported_table.hpp"
#include "config/scenario_file.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::cli {

// Notes of the variants' table, and the entries of `best` in JSON: machine, choices (of the sweep, as the choice has
// them), and costs_json of the variants, by the rule of study/decide/preference.hpp, the baseline first. Nothing where
// a figure was published, which is judged instead, or where variants run on machines or stacks of their own.
void add_best_variants(const std::vector<ComparedPoint>& points, const config::Scenario& scenario,
                       const sim::Machine& machine, Table& table, Json& best);

// The machine that is studied runs it, with its stack.
[[nodiscard]] bool is_run_by(const VariantCost& cost, const sim::Machine& machine);

}  // namespace dculab::cli
