// A machine fitted to traces of its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/hardware/machine.hpp"
#include "study/calibrate/left_out_rows.hpp"

namespace dculab::study {

struct BelievedSteps {
  std::vector<TraceStep> steps;     // of all traces, those that can be true on the machine
  std::vector<LeftOutRow> refused;  // the others, and why
  std::vector<std::string> warnings;
  std::string advice;    // where a trace is of another device: what to give instead
  std::string emulated;  // where a host played the GPU of a trace: the device that its header names
};

// Throws InputError for a file that cannot be read, and for a trace that was taken with other threads than the machine
// has.
[[nodiscard]] BelievedSteps believed_steps(const std::vector<std::string>& trace_files, const sim::Machine& machine);

// Throws InputError for fewer steps than sim::kFewestSteps, which says what to do.
void check_enough(const BelievedSteps& believed, const sim::Machine& machine);

// Which steps are drawn to be scored, not fitted.
struct HeldOutDraw {
  double share = 0;  // 0: none
  std::uint64_t seed = 1;
};

struct TraceCalibration {
  sim::Fit fit;                               // fit.machine cites the steps
  std::optional<sim::HoldOutScore> held_out;  // where steps were held out; its fit is the same

  // A measurement lies between a prediction / factor and the prediction x factor, at 90 %.
  [[nodiscard]] double interval_factor() const { return fit.machine.calibration->interval_factor; }
};

// Fits `base`. Precondition: at least sim::kFewestSteps steps.
[[nodiscard]] TraceCalibration calibrate_on(const std::vector<TraceStep>& steps, const sim::Machine& base,
                                            const HeldOutDraw& draw, const sim::FitProgress& progress);

// Whether the traces say something of the parameter: of its prior's variance at least half is gone.
[[nodiscard]] bool is_identified(const sim::FittedParameter& parameter);
// Whether the value is more than three of the prior's standard deviations away from it: then it makes up for something
// else, such as a wrong machine or wrong lengths.
[[nodiscard]] bool is_implausible(const sim::FittedParameter& parameter);

}  // namespace dculab::study
