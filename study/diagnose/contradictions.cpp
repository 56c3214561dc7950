#include "study/diagnose/contradictions.hpp"

#include <cmath>

#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "study/diagnose/likelihood.hpp"

namespace dculab::study {
namespace {

// Of two measurements, as a logarithm: three standard deviations of their difference.
const double kFarApart = 3 * std::sqrt(2.0) * kMeasurementNoise;

[[nodiscard]] bool is_longer(Seconds one, Seconds other) { return std::log(one / other) > kFarApart; }

[[nodiscard]] std::string place_text(const MeasuredStep& step) {
  return "batch " + std::to_string(step.batch) + ", context " + std::to_string(step.context);
}

[[nodiscard]] bool may_both_be(const MeasuredStep& one, const MeasuredStep& other) {
  if (one.phase != other.phase || one.batch != other.batch || one.context != other.context) return true;
  const MeasuredStep& slow = one.time > other.time ? one : other;
  const MeasuredStep& fast = one.time > other.time ? other : one;
  if (!is_longer(slow.time, fast.time)) return true;
  return slow.is_rate && !fast.is_rate && slow.batch > 1;
}

// Whether `more` has as much of all but what grows.
template <class Grows>
[[nodiscard]] std::string falling(std::span<const StepFacts> steps, const char* over, Grows grows) {
  for (const StepFacts& less : steps)
    for (const StepFacts& more : steps)
      if (grows(less.asked, more.asked) && more.predicted > less.predicted && is_longer(less.measured, more.measured))
        return std::string("the measured step gets faster with ") + over + ", " + config::short_text(less.measured) +
               " at " + place_text(less.asked) + " and " + config::short_text(more.measured) + " at " +
               place_text(more.asked) + ", though the predicted one gets slower; check that both are of one server";
  return {};
}

}  // namespace

void refuse_contradictions(std::span<const MeasuredStep> steps) {
  for (std::size_t one = 0; one < steps.size(); ++one)
    for (std::size_t other = one + 1; other < steps.size(); ++other)
      if (!may_both_be(steps[one], steps[other]))
        throw InputError(steps[other].source, "is " + config::short_text(steps[other].time) + " at " +
                                                  place_text(steps[other]) + ", but " + steps[one].source + " is " +
                                                  config::short_text(steps[one].time) +
                                                  " there; noise does not explain both, leave one out");
}

std::vector<std::string> falling_times(std::span<const StepFacts> steps) {
  const auto longer = [](const MeasuredStep& less, const MeasuredStep& more) {
    return less.batch == more.batch && less.context < more.context;
  };
  const auto larger = [](const MeasuredStep& less, const MeasuredStep& more) {
    return less.context == more.context && less.batch < more.batch;
  };
  std::vector<std::string> warnings;
  for (const std::string& warning : {falling(steps, "context", longer), falling(steps, "batch", larger)})
    if (!warning.empty()) warnings.push_back(warning);
  return warnings;
}

}  // namespace dculab::study
