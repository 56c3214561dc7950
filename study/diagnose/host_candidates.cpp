// The host, and what slows everything down.
#include <algorithm>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "study/diagnose/candidate.hpp"

namespace dculab::study {
namespace {

// A Python engine that schedules while the device waits takes 5 to 13 ms of a step (vllm-project/vllm issue 6854); four
// times that, for a slow or a shared host. A compiled program has sampling to do, over the vocabulary.
constexpr double kLeastHostStep = 0.2e-3, kMostHostStep = 50e-3, kMostCompiledStep = 10e-3;
// 0.1 to 0.2 ms a sequence (vllm-project/vllm issue 6913); penalties and grammars take milliseconds.
constexpr double kLeastHostSequence = 20e-6, kMostHostSequence = 5e-3;
// The lowest clock of GPUs that idle, over the highest: an assumption, 1.7 GHz against 170 MHz.
constexpr double kMostClockRatio = 10;

[[nodiscard]] CauseCandidate host_per_step(bool is_python) {
  return {.cause = Cause::host_per_step,
          .least = kLeastHostStep,
          .most = is_python ? kMostHostStep : kMostCompiledStep,
          .extra = [](const StepFacts&, double amount) { return Seconds(amount); },
          .figure =
              [](const StepFacts&, double amount) {
                return config::short_text(Seconds(amount)) + " of host time between steps, beside what is predicted";
              }};
}

[[nodiscard]] CauseCandidate host_per_sequence() {
  return {.cause = Cause::host_per_sequence,
          .least = kLeastHostSequence,
          .most = kMostHostSequence,
          .extra = [](const StepFacts& facts, double amount) { return Seconds(facts.asked.batch * amount); },
          .figure =
              [](const StepFacts&, double amount) {
                return config::short_text(Seconds(amount)) + " of host time for each sequence and step";
              }};
}

[[nodiscard]] CauseCandidate launches(const DiagnosisEvidence& evidence) {
  const LaunchTimes times = launch_times(evidence);
  const std::string& stated = evidence.question.enforce_eager;
  return {.cause = Cause::launches,
          .least = times.least,
          .most = times.most,
          .odds = stated == "yes"  ? kStated
                  : stated == "no" ? kUnusual
                                   : kOrdinary,
          .because = stated == "yes"  ? "no step is replayed as a graph"
                     : stated == "no" ? "steps are replayed as graphs"
                                      : "",
          .extra = [](const StepFacts& facts,
                      double amount) { return std::max(Seconds{}, Seconds(facts.launches * amount) - facts.device); },
          .figure =
              [](const StepFacts& facts, double amount) {
                return config::short_text(Seconds(amount)) + " of host time for each of " +
                       config::number(facts.launches, 4) + " kernels";
              }};
}

[[nodiscard]] double most_clock_ratio(const sim::Machine& machine) {
  double ratio = kMostClockRatio;
  for (const auto& [name, clock] : machine.clock_states) ratio = std::max(ratio, machine.clock / clock);
  return ratio;
}

[[nodiscard]] CauseCandidate low_clocks(const DiagnosisEvidence& evidence) {
  return {.cause = Cause::low_clocks,
          .least = kLeastSlowdown,
          .most = most_clock_ratio(evidence.any().machine()) - 1,
          .odds = kUnusual,
          .because = "clocks rise under load",
          .extra = [](const StepFacts& facts, double amount) { return slowed(facts.device - facts.exchange, amount); },
          .figure =
              [](const StepFacts& facts, double amount) {
                return "the device at " + config::percent(1 / (1 + amount), 2) + " of its speed (" +
                       config::short_text(facts.machine().clock * (1 / (1 + amount))) + ")";
              }};
}

}  // namespace

void add_host_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  found.push_back(host_per_step(evidence.is_python()));
  if (std::ranges::any_of(evidence.steps, [](const StepFacts& facts) { return facts.asked.batch > 1; }))
    found.push_back(host_per_sequence());
  found.push_back(launches(evidence));
  found.push_back(low_clocks(evidence));
}

}  // namespace dculab::study
