// What a calibration says about the steps of a trace that were held out (study/calibrate/held_out.hpp).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/trace.hpp"
#include "present/output/report.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/study/recommend.hpp"

namespace dculab::present {

// Held-out steps only, by op: a table, and what it shows; neither where the steps have no durations of ops.
[[nodiscard]] std::optional<std::vector<std::pair<std::string, sim::ErrorSummary>>> add_held_out_ops(
    const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report);

struct BlockSizeRegret {
  int kv_heads = 0;
  sim::Regret regret;
};
// A table, and what it shows; neither where no two block sizes were measured on the same batches.
[[nodiscard]] std::optional<std::vector<BlockSizeRegret>> add_block_size_regret(const sim::HoldOutScore& score,
                                                                                const std::vector<TraceStep>& steps,
                                                                                Report& report);

}  // namespace dculab::present
