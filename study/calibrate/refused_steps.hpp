// Which measured rows are refused, and why.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/calibration/floor_check.hpp"
#include "study/calibrate/left_out_rows.hpp"

namespace dculab::study {

// One per row with its worst violation, "down_proj took 12 us, below the 20 us that the DRAM allows"; those of one
// limit are a group.
[[nodiscard]] std::vector<LeftOutRow> refused_rows(const std::vector<sim::FloorViolation>& violations,
                                                   const Trace& trace);

// "refused: row 3 (decode ...): " and that.
[[nodiscard]] std::string refusal_line(const LeftOutRow& row);
[[nodiscard]] std::vector<std::string> refusal_lines(const std::vector<sim::FloorViolation>& violations,
                                                     const Trace& trace);

// The rows of the others, of `num_rows`.
[[nodiscard]] std::vector<std::size_t> believed_rows(const std::vector<sim::FloorViolation>& violations,
                                                     std::size_t num_rows);

}  // namespace dculab::study
