// How a calibration shows the steps of a trace that it refused, and what it says about those that were held out
// (study/calibrate/held_out.hpp).
#pragma once

#include <string>
#include <vector>

#include "model/trace.hpp"
#include "present/output/report.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"

namespace dculab::present {

// One line of the heading for each refused row. JSON: refused[]. `lines`: study::refusal_lines().
void add_refusals(const std::vector<std::string>& lines, Report& report);
void add_refusals(const std::vector<sim::FloorViolation>& violations, const Trace& trace, Report& report);

// Held-out steps only. JSON: held_out_ops.NAME.
void add_held_out_ops(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report);

// Nothing is added where no two block sizes were measured on the same batches. JSON: regret[].
void add_block_size_regret(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report);

}  // namespace dculab::present
