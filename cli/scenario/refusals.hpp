// Says which measured rows are refused, and why.
#pragma once

#include <vector>

#include "cli/output/output.hpp"
#include "core/trace.hpp"
#include "sim/calibration/floor_check.hpp"

namespace dculab::cli {

// One line per row, naming its worst violation: "row 3 (decode ...): down_proj took 12 us, below the 20 us that DRAM
// allows".
[[nodiscard]] std::vector<std::string> refusal_lines(const std::vector<sim::FloorViolation>& violations,
                                                     const Trace& trace);

// Adds them to the heading and, as "refused", to the JSON.
void add_refusals(const std::vector<sim::FloorViolation>& violations, const Trace& trace, Report& report);

}  // namespace dculab::cli
