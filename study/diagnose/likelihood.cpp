#include "study/diagnose/likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace dculab::study {
namespace {

constexpr int kAmounts = 64;              // of each candidate: their steps are far below the prediction's error
constexpr double kPairOdds = 0.1;         // a factor: an assumption, two things are seldom wrong at once
constexpr double kLargestUnknown = 1000;  // times slower: an assumption, beyond it is a mistake of units or worse

// Extra seconds by amount and step.
using Extras = std::vector<std::vector<double>>;

[[nodiscard]] double amount_at(const CauseCandidate& candidate, int index) {
  return candidate.least * std::pow(candidate.most / candidate.least, (index + 0.5) / kAmounts);
}

[[nodiscard]] Extras extras_of(const CauseCandidate& candidate, std::span<const StepFacts> steps) {
  Extras extras;
  for (int index = 0; index < kAmounts; ++index) {
    std::vector<double>& row = extras.emplace_back();
    for (const StepFacts& facts : steps) row.push_back(candidate.extra(facts, amount_at(candidate, index)).value());
  }
  return extras;
}

struct Measured {
  std::vector<double> predicted, log_measured;
  double log_sigma = 0;
  std::size_t reference = 0;
  double gap = 0;  // at the reference
};

// A normal density of the logarithms: noise on the diagonal, the prediction's error in common.
template <class Extra>
[[nodiscard]] double density(const Measured& measured, const Extra& extra) {
  constexpr double kVariance = kMeasurementNoise * kMeasurementNoise;
  double squares = 0, products = 0, common = 0;
  for (std::size_t step = 0; step < measured.predicted.size(); ++step) {
    const double predicted = measured.predicted[step], all = predicted + extra(step);
    const double residual = measured.log_measured[step] - std::log(all);
    const double shared = measured.log_sigma;
    squares += residual * residual;
    products += shared * residual;
    common += shared * shared;
  }
  const double spread = 1 + common / kVariance;
  const double distance = squares / kVariance - products * products / (kVariance * kVariance * spread);
  const auto steps = static_cast<double>(measured.predicted.size());
  return std::exp(-0.5 * distance) /
         (std::pow(std::sqrt(2 * std::numbers::pi) * kMeasurementNoise, steps) * std::sqrt(spread));
}

// A hypothesis, averaged over amounts.
struct Average {
  double density = 0;
  double first = 0, second = 0;  // shares of the gap, times density
};

void add_density(Average& average, const Measured& measured, double density, double first, double second) {
  const double all = std::max(first + second, measured.gap);
  average.density += density;
  average.first += density * std::min(1.0, first / all);
  average.second += density * std::min(1.0, second / all);
}

[[nodiscard]] Average of_one(const Measured& measured, const Extras& extras) {
  Average average;
  for (const std::vector<double>& row : extras)
    add_density(average, measured, density(measured, [&](std::size_t step) { return row[step]; }) / kAmounts,
                row[measured.reference], 0);
  return average;
}

[[nodiscard]] Average of_pair(const Measured& measured, const Extras& first, const Extras& second) {
  Average average;
  for (const std::vector<double>& one : first)
    for (const std::vector<double>& other : second)
      add_density(average, measured,
                  density(measured, [&](std::size_t step) { return one[step] + other[step]; }) / (kAmounts * kAmounts),
                  one[measured.reference], other[measured.reference]);
  return average;
}

[[nodiscard]] double of_unknown(const Measured& measured) {
  const double range = std::log(kLargestUnknown);
  const double below = std::max(2 * measured.log_sigma, kMeasurementNoise);
  double density = 1;
  for (std::size_t step = 0; step < measured.predicted.size(); ++step) {
    const double slower = measured.log_measured[step] - std::log(measured.predicted[step]);
    const double edge = slower > 0 ? range : below;
    density *= std::pow(std::min(1.0, edge / std::abs(slower)), 2) / range;
  }
  return density;
}

// The amount that fits best where the candidate is alone.
void fit_alone(const Measured& measured, const CauseCandidate& candidate, const Extras& extras, Weighed& weighed) {
  weighed.misfit = std::numeric_limits<double>::infinity();
  for (int index = 0; index < kAmounts; ++index) {
    double misfit = 0;
    for (std::size_t step = 0; step < measured.predicted.size(); ++step)
      misfit = std::max(misfit,
                        std::abs(measured.log_measured[step] -
                                 std::log(measured.predicted[step] + extras[static_cast<std::size_t>(index)][step])));
    if (misfit >= weighed.misfit) continue;
    weighed.misfit = misfit;
    weighed.amount = amount_at(candidate, index);
  }
}

[[nodiscard]] Measured measured_of(std::span<const StepFacts> steps, std::size_t reference, double log_sigma) {
  Measured measured;
  measured.log_sigma = log_sigma;
  measured.reference = reference;
  measured.gap = steps[reference].gap().value();
  for (const StepFacts& facts : steps) {
    measured.predicted.push_back(facts.predicted.value());
    measured.log_measured.push_back(std::log(facts.measured.value()));
  }
  return measured;
}

}  // namespace

Weighing weigh(std::span<const StepFacts> steps, std::span<const CauseCandidate> candidates, std::size_t reference,
               double log_sigma) {
  const Measured measured = measured_of(steps, reference, log_sigma);
  std::vector<Extras> extras;
  for (const CauseCandidate& candidate : candidates) extras.push_back(extras_of(candidate, steps));
  Weighing weighing{.candidates = std::vector<Weighed>(candidates.size()), .unknown = of_unknown(measured)};
  double total = weighing.unknown;
  const auto count = [&](std::size_t index, double odds, double density, double share) {
    weighing.candidates[index].probability += odds * density;
    weighing.candidates[index].share += odds * share;
  };
  for (std::size_t one = 0; one < candidates.size(); ++one) {
    fit_alone(measured, candidates[one], extras[one], weighing.candidates[one]);
    const Average alone = of_one(measured, extras[one]);
    count(one, candidates[one].odds, alone.density, alone.first);
    total += candidates[one].odds * alone.density;
    for (std::size_t other = one + 1; other < candidates.size(); ++other) {
      const double odds = kPairOdds * candidates[one].odds * candidates[other].odds;
      const Average pair = of_pair(measured, extras[one], extras[other]);
      count(one, odds, pair.density, pair.first);
      count(other, odds, pair.density, pair.second);
      total += odds * pair.density;
    }
  }
  if (total <= 0) return {.candidates = weighing.candidates, .unknown = 1};
  weighing.unknown /= total;
  for (Weighed& weighed : weighing.candidates) {
    weighed.probability /= total;
    weighed.share /= total;
  }
  return weighing;
}

}  // namespace dculab::study
