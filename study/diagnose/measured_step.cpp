#include "study/diagnose/measured_step.hpp"

#include <charconv>
#include <cmath>
#include <string_view>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "study/diagnose/benchmark_steps.hpp"
#include "study/diagnose/contradictions.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] Seconds parse_time(const std::string& option, const std::string& text) {
  Seconds time;
  try {
    time = config::parse_quantity<Seconds>(text);
  } catch (const InputError& problem) {
    throw InputError(option, problem.what());
  }
  if (time <= Seconds{}) throw InputError(option, "a time of 0 was not measured");
  return time;
}

// "8x1500=66ms"
[[nodiscard]] MeasuredStep parse_at(const std::string& text, int batch) {
  const std::string option = "--at " + text;
  const std::string advice = "write CONTEXT=TIME or BATCHxCONTEXT=TIME: --at 512=24ms --at 8x1500=66ms";
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw InputError(option, "has no '='; " + advice);
  const std::string_view place = std::string_view(text).substr(0, equals);
  const auto times = place.find('x');
  const auto count = [&](std::string_view number, int largest) {
    int value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || value < 1 || value > largest)
      throw InputError(option, in_quotes(std::string(number)) + " is not a whole number from 1 to " +
                                   std::to_string(largest) + "; " + advice);
    return value;
  };
  MeasuredStep step{.batch = batch};
  if (times != std::string_view::npos) step.batch = count(place.substr(0, times), kLargestBatch);
  step.context = count(times == std::string_view::npos ? place : place.substr(times + 1), kLongestContext);
  step.time = parse_time(option, text.substr(equals + 1));
  step.source = option;
  return step;
}

[[nodiscard]] MeasuredStep of_rate(const StepQuestion& question, const char* option, double rate) {
  if (!std::isfinite(rate) || rate <= 0) throw InputError(option, "must be above 0");
  return {.batch = question.batch,
          .context = question.context,
          .time = Seconds(question.batch / rate),
          .is_rate = true,
          .source = std::string(option) + " " + config::exact_number(rate)};
}

constexpr Seconds kLongest{3600};  // of a token: no program that answers takes an hour

[[nodiscard]] Seconds of_a_token(const MeasuredStep& step) {
  return step.phase == Phase::decode ? step.time : step.time * (1.0 / step.batch / step.context);
}

void refuse_slips_of_unit(const std::vector<MeasuredStep>& steps) {
  for (const MeasuredStep& step : steps)
    if (of_a_token(step) > kLongest) throw InputError(step.source, "is more than an hour for a token; check the unit");
}

void add_given_prefill(const DiagnosisQuestion& question, std::vector<MeasuredStep>& steps) {
  if (question.prefill_tokens_per_second == 0) return;
  MeasuredStep whole = of_rate(question.step, "--prefill-tokens-per-second", question.prefill_tokens_per_second);
  whole.phase = Phase::prefill;
  whole.time = question.step.context * whole.time;
  steps.push_back(whole);
}

void add_given_decode(const DiagnosisQuestion& question, std::vector<MeasuredStep>& steps) {
  const StepQuestion& step = question.step;
  if (question.tokens_per_second != 0)
    steps.push_back(of_rate(step, "--tokens-per-second", question.tokens_per_second));
  if (!question.tpot.empty())
    steps.push_back({.batch = step.batch,
                     .context = step.context,
                     .time = parse_time("--tpot", question.tpot),
                     .source = "--tpot " + question.tpot});
  for (const std::string& text : question.at) steps.push_back(parse_at(text, step.batch));
}

}  // namespace

Measurements measured_steps(DiagnosisQuestion& question) {
  const bool is_prefill = question.prefill_tokens_per_second != 0 || question.step.phase == "prefill";
  const bool has_decode = question.tokens_per_second != 0 || !question.tpot.empty() || !question.at.empty();
  if (is_prefill && has_decode)
    throw InputError("--prefill-tokens-per-second",
                     "prefill and decode are diagnosed one at a time; leave out the figures of one");
  if (is_prefill) question.step.phase = "prefill";
  Measurements found;
  std::vector<MeasuredStep>& steps = found.steps;
  add_benchmark_steps(question, is_prefill ? Phase::prefill : Phase::decode, found);
  add_given_prefill(question, steps);
  add_given_decode(question, steps);
  if (steps.empty())
    throw InputError("diagnose",
                     "nothing was measured; give --tokens-per-second, --tpot, --at CONTEXT=TIME, "
                     "--prefill-tokens-per-second or a benchmark's result");
  if (steps.size() > kMostMeasurements)
    throw InputError("diagnose", "takes at most " + std::to_string(kMostMeasurements) + " measurements, not " +
                                     std::to_string(steps.size()));
  refuse_slips_of_unit(steps);
  refuse_contradictions(steps);
  return found;
}

}  // namespace dculab::study
