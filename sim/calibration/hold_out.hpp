// Calibrates on one part of the measured steps and scores the other: the errors that a user may believe.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/trace.hpp"
#include "sim/calibration/fit.hpp"

namespace dculab::sim {

// Called before each fit with the share of them, 0 to 1, that is done: the time of each grows with the steps.
using FitProgress = std::function<void(double share)>;

struct HoldOutScore {
  Fit fit;                          // machine.calibration says how wide intervals are and where it was calibrated
  std::vector<std::size_t> fitted;  // rows of the trace
  std::vector<std::size_t> held_out;
  std::vector<PredictedMeasured> pairs;  // [held_out.size()]
  ErrorSummary error;                    // of the held-out rows
  double covered = 0;                    // share of the held-out rows inside their interval
};

// Draws round(share * steps) rows at random with `seed`, fits the rest, predicts the drawn. The interval comes from
// five-fold cross-validation within the fitted rows, so the held-out rows judge it too.
// Preconditions: at least 4 steps; 0 < held_out_share < 1.
[[nodiscard]] HoldOutScore calibrate_with_hold_out(
    const Machine& base, const std::vector<TraceStep>& steps, double held_out_share, std::uint64_t seed,
    const FitProgress& progress = [](double) {});

// Fits all steps; the interval comes from five-fold cross-validation. Precondition: at least 2 steps.
[[nodiscard]] Fit calibrate(
    const Machine& base, const std::vector<TraceStep>& steps, const FitProgress& progress = [](double) {});

inline constexpr double kIntervalCoverage = 0.9;

}  // namespace dculab::sim
