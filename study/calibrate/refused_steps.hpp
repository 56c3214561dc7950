// Which measured rows are refused, and why.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/calibration/floor_check.hpp"

namespace dculab::study {

// One line per row, naming its worst violation: "row 3 (decode ...): down_proj took 12 us, below the 20 us that DRAM
// allows".
[[nodiscard]] std::vector<std::string> refusal_lines(const std::vector<sim::FloorViolation>& violations,
                                                     const Trace& trace);

// The rows of the others, of `num_rows`.
[[nodiscard]] std::vector<std::size_t> believed_rows(const std::vector<sim::FloorViolation>& violations,
                                                     std::size_t num_rows);

}  // namespace dculab::study
