// Fits a machine and its stack to what benchmark tools measured of a server. Step times are latent: a candidate machine
// serves the same requests under a virtual clock, and its figures are held against the measured ones.
//
//   minimise  sum over figures huber(log(predicted / measured) / sigma)^2 / n + sum over theta (theta / prior sigma)^2
//
// theta: the logarithms of what sim/calibration/parameters.hpp lists, and host.per_request in units of 5 ms. sigma: 1 %
// of a mean or a median and of a run's duration and rates, 5 % of other quantiles, whose value hangs on a few requests,
// or the deviation that the file states. n: figures of one latency, or of one duration, which tell the same.
//
// How: sim/calibration/jumping_fit.hpp, since whom a step serves changes by leaps.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/hardware/machine.hpp"
#include "study/benchmarks/benchmark_scores.hpp"

namespace dculab::study {

struct BenchmarkFit {
  sim::Machine before, machine;                     // with the stack that ran
  std::vector<sim::FittedParameter> parameters;     // those on which a figure depends
  std::vector<double> errors_before;                // of all figures, as BenchmarkScore::error
  std::vector<std::vector<BenchmarkScore>> scores;  // [cases][figures] by the fitted machine
  double step_factor = 1;                           // a step lies in [price / factor, price * factor], at 90 %
  std::vector<sim::StepFeatures> steps{};           // some of those that the fitted machine takes for the cases
};

// Called with the share that is done.
using BenchmarkProgress = std::function<void(double share)>;

// Preconditions: at least one case; all are of one machine and one stack. Throws InputError where no figure depends on
// anything that can be fitted.
[[nodiscard]] BenchmarkFit fit_benchmarks(const std::vector<BenchmarkCase>& cases, const BenchmarkProgress& progress);

// hwmodels/MACHINE.yaml and stacks/STACK.yaml below `folder`: a data folder that every command reads. `machine`: the
// file, or name, that the fit began with. Returns the files, from there. Throws InputError where one cannot be written.
std::vector<std::filesystem::path> write_fit(const BenchmarkFit& fit, const std::string& machine,
                                             const std::filesystem::path& folder);

}  // namespace dculab::study
