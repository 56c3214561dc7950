// A scenario's sweep, measured on this machine: calibrated on one part, scored on the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "engine/measure/step_bench.hpp"
#include "model/trace.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/study/recommend.hpp"
#include "study/calibrate/held_out.hpp"
#include "study/scenario/study_points.hpp"

namespace dculab::study {

// A step that the fit had not seen.
struct HeldOutStep {
  const StudyPoint* point = nullptr;
  const TraceStep* measured = nullptr;
  Seconds predicted;
  sim::Confidence trust;
  std::string bound;
  std::optional<ExchangeTimes> exchanges{};  // of several processes
};

// |predicted / measured - 1| of the exchanges of held-out steps.
struct ExchangeErrors {
  std::size_t count = 0;
  double median = 0, p90 = 0;
};

// Of repeated measurements of a step: half the interquartile range over the duration.
struct RunToRun {
  double median = 0, p90 = 0;
};

struct MeasuredSweep {
  std::vector<StudyPoint> points;
  Trace trace;                                 // of all points
  std::vector<sim::FloorViolation> refused;    // rows of the trace that cannot be true
  std::vector<TraceStep> steps;                // the others
  std::vector<const StudyPoint*> step_points;  // [steps.size()]
  sim::HoldOutScore score;                     // of `steps`; score.fit.machine is the calibrated machine
  std::vector<HeldOutStep> held_out;
  std::optional<ExchangeErrors> exchange_errors{};  // of several processes
  RunToRun spread{};                                // of `steps`
  std::optional<sim::Regret> regret{};              // of following the predictions, over `steps`
};

// `host` is this machine before calibration. Throws InputError when the points cannot be run or split.
[[nodiscard]] MeasuredSweep measure_sweep(const config::Scenario& scenario, const sim::Machine& host,
                                          const engine::BenchProgress& progress);

}  // namespace dculab::study
