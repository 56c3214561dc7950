// Predictions of what benchmark tools measured.
#pragma once

#include <vector>

#include "sim/calibration/confidence.hpp"
#include "sim/hardware/machine.hpp"
#include "study/benchmarks/benchmark_cases.hpp"

namespace dculab::study {

// One value for each of the result's figures, as `machine` would have them, with the stack that runs there. `scale`:
// what each step takes, over its price.
[[nodiscard]] std::vector<double> predicted_figures(const BenchmarkCase& each, const sim::Machine& machine,
                                                    double scale = 1);

// Of some of the steps that `machine` takes for the case: what was calibrated on.
[[nodiscard]] std::vector<sim::StepFeatures> predicted_steps(const BenchmarkCase& each, const sim::Machine& machine);

struct BenchmarkScore {
  config::BenchmarkFigure figure;
  double predicted = 0;
  double low = 0, high = 0;  // 90 % interval

  // Error of the time behind the figure: a rate's is measured / predicted - 1, so that > 0 is too slow everywhere.
  [[nodiscard]] double error() const;
  [[nodiscard]] bool inside() const { return low <= figure.value && figure.value <= high; }
};

// Predicted by the case's own machine, with intervals.
[[nodiscard]] std::vector<BenchmarkScore> score_benchmark(const BenchmarkCase& each);

// Predicted by `machine`, whose steps take between price / factor and price * factor.
[[nodiscard]] std::vector<BenchmarkScore> score_benchmark(const BenchmarkCase& each, const sim::Machine& machine,
                                                          double factor);

}  // namespace dculab::study
