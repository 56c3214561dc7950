// Routed experts.
#include <algorithm>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "study/diagnose/candidate.hpp"

namespace dculab::study {
namespace {

// Gate, up, activation and down of each expert.
constexpr double kKernelsPerExpert = 4;
constexpr const char* kFused = "the program has a kernel for the chosen experts of a layer";

struct Routed {
  double touched = 0;  // experts that get a token, of all layers
  double all = 0;      // experts of all layers
};

[[nodiscard]] Routed routed(const StepFacts& facts) {
  Routed experts;
  for (const Op& op : facts.prediction.plan.ops) {
    if (op.weight != WeightSlot::expert_up_proj) continue;
    experts.touched += op.count * op.groups.touched;
    experts.all += static_cast<double>(op.count) * op.groups.count;
  }
  return experts;
}

[[nodiscard]] CauseCandidate all_experts_read(bool is_fused) {
  return {.cause = Cause::all_experts_read,
          .least = 0.5,
          .most = 2,
          .odds = is_fused ? kUnusual : kOrdinary,
          .because = is_fused ? kFused : "",
          .extra =
              [](const StepFacts& facts, double amount) {
                const Routed experts = routed(facts);
                const double more = experts.touched > 0 ? experts.all / experts.touched - 1 : 0;
                return slowed(facts.experts.time, amount * std::max(0.0, more));
              },
          .figure =
              [](const StepFacts& facts, double) {
                const Routed experts = routed(facts);
                return "all " + config::number(experts.all, 4) +
                       " experts of the layers read; the step's tokens choose " + config::number(experts.touched, 3);
              }};
}

[[nodiscard]] CauseCandidate slow_experts(const DiagnosisEvidence& evidence) {
  const StepFacts& facts = evidence.any();
  const Dtype dtype = facts.prediction.options.weights.dtype;
  const double load = bits(dtype) < 8 ? 4 : bits(dtype) / 8.0;
  return {.cause = Cause::slow_experts,
          .least = kLeastSlowdown,
          .most = facts.machine().dram().line.value() / load - 1,
          .extra = [](const StepFacts& step, double amount) { return slowed(step.experts.time, amount); },
          .figure =
              [](const StepFacts& step, double amount) {
                return "products of experts at " +
                       share_of_dram(step, step.experts.bytes, (1 + amount) * step.experts.time);
              }};
}

[[nodiscard]] CauseCandidate one_by_one(const DiagnosisEvidence& evidence, bool is_fused) {
  const LaunchTimes times = launch_times(evidence);
  return {.cause = Cause::experts_one_by_one,
          .least = times.least,
          .most = times.most,
          .odds = is_fused ? kUnusual : kOrdinary,
          .because = is_fused ? kFused : "",
          .extra =
              [](const StepFacts& facts, double amount) {
                return std::max(Seconds{}, Seconds(kKernelsPerExpert * routed(facts).all * amount) - facts.device);
              },
          .figure =
              [](const StepFacts& facts, double amount) {
                return config::short_text(Seconds(amount)) + " for each of " +
                       config::number(kKernelsPerExpert * routed(facts).all, 4) + " launches";
              }};
}

}  // namespace

void add_expert_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  if (evidence.any().experts.time <= Seconds{}) return;
  const sim::Stack& stack = evidence.any().machine().stack;
  const bool is_fused = !stack.kernels.experts.empty() || stack.is_own();
  found.push_back(all_experts_read(is_fused));
  found.push_back(slow_experts(evidence));
  found.push_back(one_by_one(evidence, is_fused));
}

}  // namespace dculab::study
