// JSON Schemas of files: machines, stacks, scenarios and traces.
#pragma once

#include "config/key_tree.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// Draft 2020-12. Beside what the draft has, a number says its `unit`; a text with a unit its bounds in that unit
// (`minimum`, `maximum`); a key that may be left out what holds then, as a file would say it (`default`) or in words
// (`absent`); and keys that are data how they are shown (`key`: "<dtype>").
[[nodiscard]] Json file_schema(const config::FileTree& tree);

[[nodiscard]] Json machine_schema();
[[nodiscard]] Json stack_schema();
[[nodiscard]] Json scenario_schema();
[[nodiscard]] Json trace_schema();  // of a line

}  // namespace dculab::present
