#include "study/calibrate/trace_calibration.hpp"

#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "sim/calibration/floor_check.hpp"
#include "study/calibrate/calibrated_machine.hpp"
#include "study/calibrate/measured_traces.hpp"
#include "study/calibrate/recorded_device.hpp"
#include "study/calibrate/refused_steps.hpp"

namespace dculab::study {

BelievedSteps believed_steps(const std::vector<std::string>& trace_files, const sim::Machine& machine) {
  BelievedSteps believed;
  const std::vector<MeasuredTrace> traces = read_traces(trace_files, TraceUse::fit);
  believed.warnings = other_devices(traces, machine);
  believed.advice = advice_on_devices(traces, machine);
  believed.emulated = emulated_device(traces);
  for (const auto& [file, trace] : traces) {
    if (machine.kind == lower::DeviceKind::cpu && trace.header.threads != 0 &&
        trace.header.threads != machine.compute_units)
      throw InputError(file, "was taken with " + std::to_string(trace.header.threads) + " threads, but " +
                                 machine.name + " describes " + std::to_string(machine.compute_units) +
                                 "; probe with --threads " + std::to_string(trace.header.threads));
    const auto violations = sim::floor_violations(machine, trace.steps);
    for (LeftOutRow& row : refused_rows(violations, trace)) believed.refused.push_back(std::move(row));
    for (const std::size_t row : believed_rows(violations, trace.steps.size()))
      believed.steps.push_back(trace.steps[row]);
  }
  return believed;
}

void check_enough(const BelievedSteps& believed, const sim::Machine& machine) {
  const std::size_t usable = believed.steps.size(), refused = believed.refused.size();
  if (usable >= sim::kFewestSteps) return;
  std::string advice = believed.advice;
  if (advice.empty() && usable + refused >= sim::kFewestSteps)
    advice = std::to_string(refused) + " are faster than " + machine.name +
             " can be: give --machine the device that they were recorded on";
  if (advice.empty()) advice = "run a larger grid with `dculab bench --trace`";
  throw InputError("only " + std::to_string(usable) + " steps of these traces can be used, " +
                   std::to_string(sim::kFewestSteps) + " are needed; " + advice);
}

TraceCalibration calibrate_on(const std::vector<TraceStep>& steps, const sim::Machine& base, const HeldOutDraw& draw,
                              const sim::FitProgress& progress) {
  TraceCalibration calibration;
  if (draw.share > 0) {
    calibration.held_out = sim::calibrate_with_hold_out(base, steps, draw.share, draw.seed, progress);
    calibration.fit = calibration.held_out->fit;
  } else {
    calibration.fit = sim::calibrate(base, steps, progress);
  }
  cite_fit(calibration.fit.machine, std::to_string(steps.size()) + " measured steps");
  return calibration;
}

bool is_identified(const sim::FittedParameter& parameter) {
  return parameter.log_sigma < 0.7 * parameter.prior_log_sigma;
}

bool is_implausible(const sim::FittedParameter& parameter) {
  return std::abs(parameter.shift()) > 3 * parameter.prior_log_sigma;
}

}  // namespace dculab::study
