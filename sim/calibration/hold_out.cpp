#include "sim/calibration/hold_out.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"

namespace dculab::sim {
namespace {

constexpr std::size_t kFolds = 5;

[[nodiscard]] std::vector<TraceStep> select(const std::vector<TraceStep>& steps, const std::vector<std::size_t>& rows) {
  std::vector<TraceStep> selected;
  for (const std::size_t row : rows) selected.push_back(steps[row]);
  return selected;
}

// Predictions of each step by a fit that did not see it.
[[nodiscard]] std::vector<PredictedMeasured> cross_validate(const Machine& base, const std::vector<TraceStep>& steps,
                                                            const FitProgress& progress) {
  const std::size_t folds = std::min(kFolds, steps.size());
  std::vector<PredictedMeasured> pairs;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    progress(static_cast<double>(fold + 1) / static_cast<double>(folds + 1));
    std::vector<TraceStep> seen, unseen;
    for (std::size_t row = 0; row < steps.size(); ++row) (row % folds == fold ? unseen : seen).push_back(steps[row]);
    const Machine machine = fit_machine(base, seen).machine;
    for (const PredictedMeasured& pair : compare_steps(machine, unseen)) pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace

Fit calibrate(const Machine& base, const std::vector<TraceStep>& steps, const FitProgress& progress) {
  progress(0);
  Fit fit = fit_machine(base, steps);
  const std::vector<PredictedMeasured> unseen = cross_validate(base, steps, progress);
  const double factor = conformal_factor(unseen, kIntervalCoverage);
  if (!(factor <= kWidestInterval))
    throw InputError("the steps that were held out are off by more than a factor of " +
                     std::to_string(std::lround(kWidestInterval)) + "; are these traces of this machine?");
  fit.machine.calibration = Calibration{.held_out_steps = static_cast<int>(unseen.size()),
                                        .coverage = kIntervalCoverage,
                                        .interval_factor = factor,
                                        .domain = calibrated_domain(features_of(steps)),
                                        .formats = calibrated_formats(features_of(steps))};
  return fit;
}

HoldOutScore calibrate_with_hold_out(const Machine& base, const std::vector<TraceStep>& steps, double held_out_share,
                                     std::uint64_t seed, const FitProgress& progress) {
  std::vector<std::size_t> rows(steps.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  std::shuffle(rows.begin(), rows.end(), random);
  const double wanted = held_out_share * static_cast<double>(rows.size());
  const auto held = std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(wanted)), 1, rows.size() - 2);
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(held);
  HoldOutScore score;
  score.held_out.assign(rows.begin(), middle);
  score.fitted.assign(middle, rows.end());
  std::sort(score.held_out.begin(), score.held_out.end());

  score.fit = calibrate(base, select(steps, score.fitted), progress);
  score.pairs = compare_steps(score.fit.machine, select(steps, score.held_out));
  score.error = summarize_errors(score.pairs);
  int inside = 0;
  for (std::size_t index = 0; index < score.pairs.size(); ++index) {
    const TraceStep& step = steps[score.held_out[index]];
    const PredictedMeasured& pair = score.pairs[index];
    const Confidence trust = confidence(score.fit.machine, step.model, step.options,
                                        plan_step(step.model, step.options, step.batch), pair.predicted);
    if (pair.measured >= trust.low && pair.measured <= trust.high) ++inside;
  }
  score.covered = inside / static_cast<double>(score.pairs.size());
  return score;
}

}  // namespace dculab::sim
