// How far measurements speak for each candidate.
//
// Hypotheses: each candidate alone, each pair of candidates, and something that is not among them. A step under a
// hypothesis takes what is predicted and what its candidates add (candidate.hpp). Its measurement differs from that by
//
//   the prediction's error, one for all steps: log-normal, as wide as its 90 % interval. What candidates add is
//     computed from the same figures and limits, so it is as wrong.
//   noise, another for each step: log-normal of 5 %
//
// A hypothesis has the odds of its candidates, times 1/10 for a pair: two things are seldom wrong at once. How well it
// fits is averaged over the amounts that its candidates may have, so one that could explain anything is worth less than
// one that says what must be measured and is right. What is not among them makes each step up to 1000 times slower, any
// factor as likely as any other on a logarithmic scale, with odds of 1. Beyond, and below what the prediction's error
// leaves open, its density falls with the square of the factor's logarithm, slower than that of any candidate: where
// nothing fits, it is something else.
#pragma once

#include <span>
#include <vector>

#include "study/diagnose/candidate.hpp"

namespace dculab::study {

// Of a measured time, as a standard deviation of its logarithm: an assumption.
inline constexpr double kMeasurementNoise = 0.05;

// What the measurements say of a candidate.
struct Weighed {
  double share = 0;        // of the gap at `reference`, that hypotheses put there, each by how likely it is
  double probability = 0;  // that it is at work, alone or in a pair
  double amount = 0;       // that fits best alone
  double misfit = 0;       // then, largest |log(measured / explained)| of the steps
};

struct Weighing {
  std::vector<Weighed> candidates;  // in order
  double unknown = 0;               // probability that it is none of them
};

// Preconditions: at least one step; every step was measured slower than its floor. `log_sigma`: the prediction's error.
[[nodiscard]] Weighing weigh(std::span<const StepFacts> steps, std::span<const CauseCandidate> candidates,
                             std::size_t reference, double log_sigma);

}  // namespace dculab::study
