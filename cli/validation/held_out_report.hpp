// What calibrating on one part of a trace says about the rest: the error of every op, and what it would have cost to
// follow the predictions.
#pragma once

#include <vector>

#include "cli/output/output.hpp"
#include "core/trace.hpp"
#include "sim/calibration/hold_out.hpp"

namespace dculab::cli {

// Held-out steps only. JSON: held_out_ops.NAME.
void add_held_out_ops(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report);

// The KV block size, decided for each number of KV heads by the predictions of the fitted machine, in measured time.
// All steps. Nothing is added where no two block sizes were measured on the same batches. JSON: regret[].
void add_block_size_regret(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report);

}  // namespace dculab::cli
