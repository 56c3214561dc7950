// The variants of a study with `compare`, measured on this machine beside their baseline.
#pragma once

#include <vector>

#include "config/scenario_file.hpp"
#include "engine/measure/step_bench.hpp"
#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

// How many times as fast as the baseline a variant is at a point of the sweep.
struct MeasuredSpeedUp {
  std::size_t point = 0;    // of the sweep
  std::size_t variant = 0;  // of compare.variants
  Seconds step;             // the variant's
  double predicted = 0;     // by a fit to the baseline alone
  double measured = 0;
  double lowest = 0, highest = 0;  // of single rounds
};

struct MeasuredComparison {
  std::vector<MeasuredSpeedUp> speed_ups;
  Trace trace;           // the fastest round of the baseline and of each variant, point by point
  sim::Machine machine;  // calibrated on the baseline
};

// `sweep`: the scenario's points. Throws InputError for what is no step, or does not run here.
[[nodiscard]] MeasuredComparison measure_comparison(const config::Scenario& scenario,
                                                    const std::vector<config::SweepPoint>& sweep,
                                                    const sim::Machine& host, const engine::BenchProgress& progress);

}  // namespace dculab::study
