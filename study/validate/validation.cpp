#include "study/validate/validation.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/floor_check.hpp"
#include "study/calibrate/measured_traces.hpp"
#include "study/calibrate/recorded_device.hpp"
#include "study/calibrate/refused_steps.hpp"
#include "study/validate/point_scores.hpp"
#include "study/validate/points_set.hpp"

namespace dculab::study {
namespace {

// "bw1000 at 1550 MHz with rocBLAS", "bw1000 with Triton, triton_unified_attention_3d block_m=16", "bw1000 alone".
[[nodiscard]] std::string name_of(const config::PublishedPoint& point, const std::string& program) {
  std::string name = point.machine;
  if (!point.clock.empty()) name += " at " + point.clock;
  name += config::is_of_hardware(point.kind) ? " alone" : " with " + program;
  return point.kernel.empty() ? name : name + ", " + point.kernel;
}

// A machine with the points that were priced on it.
void keep_priced(PointSet& set, Runs& runs, std::map<std::string, PricedOn>& priced) {
  for (ReadPoint& read : set.points) {
    if (!read.is_scored()) continue;
    const std::string name = name_of(read.point, program_of(read.point));
    const auto [part, is_new] = priced.try_emplace(name, PricedOn{runs.of(read.point).machine, {}});
    if (is_new) part->second.machine.name = name;
    part->second.measured_runs.push_back(std::move(read.priced.measured_run));
  }
}

[[nodiscard]] std::string why_none(const Scores& scores) {
  for (const auto* left_out : {&scores.unpriced, &scores.refused})
    if (!left_out->empty()) return "line " + std::to_string(left_out->front().line) + ": " + left_out->front().reason;
  return "";
}

[[nodiscard]] const char* phase_of(const Batch& batch) {
  int prefills = 0;
  for (const SequenceSlice& slice : batch.sequences) prefills += slice.phase == Phase::prefill ? 1 : 0;
  if (prefills == 0) return "decode";
  return prefills == static_cast<int>(batch.sequences.size()) ? "prefill" : "mixed";
}

[[nodiscard]] ScoredRow score_step(const TraceStep& step, int row, const sim::MeasuredRun& measured_run,
                                   const sim::Machine& machine) {
  const Seconds time = sim::price_run(machine, measured_run);
  const sim::Confidence trust =
      sim::confidence(machine, step.model, step.options, measured_run.steps.front().plan, time);
  return {.line = row,
          .id = step.id,
          .kind = phase_of(step.batch),
          .machine = machine.name,
          .model = step.model.name,
          .software = "",
          .measured = step.duration.value(),
          .predicted = time.value(),
          .low = trust.low.value(),
          .high = trust.high.value(),
          .unit = "s",
          .basis = std::string(sim::name(trust.basis)),
          .bound = sim::run_bound(machine, measured_run),
          .note = "",
          .naive = 0};
}

[[nodiscard]] std::string why_no_step(const Scores& scores, const std::vector<MeasuredTrace>& traces,
                                      const sim::Machine& machine) {
  if (scores.refused.empty()) return "has no steps";
  const LeftOutRow& first = scores.refused.front();
  const std::string advice = advice_on_devices(traces, machine);
  return "all " + std::to_string(scores.refused.size()) + " steps are faster than " + machine.name +
         " can be, so nothing is compared; row " + std::to_string(first.line) + " (" + first.id + "): " + first.reason +
         "; " + (advice.empty() ? "give --machine the device that they were recorded on" : advice);
}

void score_trace(const Trace& trace, PricedOn& priced, Scores& scores) {
  const sim::Machine& machine = priced.machine;
  const auto violations = sim::floor_violations(machine, trace.steps);
  for (LeftOutRow& row : refused_rows(violations, trace)) scores.refused.push_back(std::move(row));
  for (const std::size_t row : believed_rows(violations, trace.steps.size())) {
    const TraceStep& step = trace.steps[row];
    sim::MeasuredRun& measured_run = priced.measured_runs.emplace_back();
    measured_run.steps.push_back({plan_step(step.model, step.options, step.batch), 1});
    scores.rows.push_back(score_step(step, static_cast<int>(row) + 1, measured_run, machine));
  }
}

}  // namespace

std::optional<std::vector<sim::InputSensitivity>> input_sensitivities_of(const PricedOn& priced) {
  std::vector<const sim::MeasuredRun*> measured_runs;
  for (const sim::MeasuredRun& measured_run : priced.measured_runs) measured_runs.push_back(&measured_run);
  return sim::input_sensitivities(priced.machine, measured_runs);
}

Validation validate_points(const std::vector<std::string>& points, const std::vector<std::string>& calibrate_on) {
  PointSet set = read_point_set(points);
  Runs* runs = &set.runs;
  std::set<std::string> fitted;
  Validation validation;
  std::optional<Runs> learned;
  if (!calibrate_on.empty()) {
    PointSet others = read_point_set(calibrate_on);
    validation.calibration = learn_from(others);
    runs = &learned.emplace(validation.calibration);
    for (const ReadPoint& read : others.points)
      if (read.teaches()) fitted.insert(read.point.id);
  }
  validation.scores = score_points(set, *runs, fitted);
  if (validation.scores.rows.empty())
    throw InputError(points.front(), set.points.empty()
                                         ? "has no points"
                                         : "no point of the file can be predicted: " + why_none(validation.scores));
  validation.seen =
      std::ranges::count_if(set.points, [&fitted](const ReadPoint& read) { return fitted.contains(read.point.id); });
  keep_priced(set, *runs, validation.priced);
  return validation;
}

Validation validate_traces(const std::vector<std::string>& traces, const sim::Machine& machine) {
  Validation validation;
  PricedOn& priced = validation.priced.try_emplace(machine.name, PricedOn{machine, {}}).first->second;
  const std::vector<MeasuredTrace> measured = read_traces(traces, TraceUse::compare);
  validation.warnings = other_devices(measured, machine);
  for (const MeasuredTrace& each : measured) score_trace(each.trace, priced, validation.scores);
  if (validation.scores.rows.empty())
    throw InputError(traces.front(), why_no_step(validation.scores, measured, machine));
  return validation;
}

}  // namespace dculab::study
