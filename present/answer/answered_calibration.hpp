// A machine fitted to traces, or machines and stacks to published points, by the words of `dculab calibrate`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"
#include "study/benchmarks/benchmark_cases.hpp"
#include "study/calibrate/trace_calibration.hpp"

namespace dculab::present {

struct TraceQuestion {
  std::vector<std::string> traces;
  std::string machine;  // to start from
  study::HeldOutDraw held_out{};
  bool wants_machine = false;  // a file of the calibrated one
};

// Called while it runs. Each may be empty.
struct CalibrationEvents {
  std::function<void(const std::string& label, double share)> progress{};
  std::function<void(const std::string& line)> on_refused{};  // steps, before the fit refuses to work without them
};

struct CalibratedMachine {
  sim::Machine machine;
  Report report;
};

// Throws InputError, also where a machine is wanted of traces whose GPU a host played.
[[nodiscard]] CalibratedMachine calibrated_on_traces(const TraceQuestion& question, const CalibrationEvents& events);

// Writes machine and stack into a new `folder`, where one is given. Throws InputError.
[[nodiscard]] Report calibrated_on_benchmarks(
    const study::BenchmarkQuestion& question, const std::string& folder,
    const std::function<void(const std::string& label, double share)>& progress);

// Writes what was learned into a new `folder`: machine and stack files. Throws InputError.
[[nodiscard]] Report calibrated_on_points(const std::vector<std::string>& points, const std::string& folder);

}  // namespace dculab::present
