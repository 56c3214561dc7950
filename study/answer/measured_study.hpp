// A study of a scenario, run on this machine: what was measured beside what was predicted of it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "config/scenario_file.hpp"
#include "engine/measure/step_bench.hpp"
#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"
#include "study/measure/measured_comparison.hpp"
#include "study/measure/measured_drafts.hpp"
#include "study/measure/measured_sweep.hpp"
#include "study/measure/served_study.hpp"

namespace dculab::study {

struct MeasuredStudy {
  std::string host;                         // this machine, before it was calibrated: its description
  std::vector<config::SweepPoint> sweep{};  // that served requests and comparisons refer to; else empty
  std::variant<MeasuredSweep, MeasuredComparison, MeasuredDrafts, ServedStudy> found{};

  [[nodiscard]] const Trace& trace() const;
  [[nodiscard]] const sim::Machine& machine() const;  // calibrated
};

// Serves the scenario's requests, runs its variants, its drafts or the points of its sweep. `host`: this machine before
// it is calibrated. Throws InputError when a point cannot be run, or too few can be believed.
[[nodiscard]] MeasuredStudy measure_study(const config::Scenario& scenario, const sim::Machine& host,
                                          const engine::BenchProgress& progress);

}  // namespace dculab::study
