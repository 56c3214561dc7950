// The explanations that are held against a measurement. Each has one unknown, its amount: seconds of host time, how
// many times slower a kernel is, which share of the weights lies elsewhere. How much time an amount adds to a step
// follows from the plan and the machine, and so does the largest amount that is possible.
//
// Before anything is measured an amount is as likely in any one factor as in another between `least` and `most`
// (log-uniform), and a cause has odds:
//
//   4      the configuration says that it is so, or that what would prevent it is missing
//   1      nothing speaks for or against it
//   1/4    something would have to be wrong that the program prevents or reports
//
// Where the figures say how much a cause adds, the amount is 1 and is taken to be known to a factor of two: 0.5 to 2.
// That and the odds are assumptions.
//
// All are stated here, for all machines and programs alike; none is fitted to a case.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "study/diagnose/cause.hpp"

namespace dculab::study {

inline constexpr double kStated = 4, kOrdinary = 1, kUnusual = 0.25;

struct CauseCandidate {
  Cause cause = Cause::host_per_step;
  double least = 0, most = 0;
  double odds = kOrdinary;
  std::string because{};  // why the odds are not 1
  // What an amount adds to a step: 0 at 0, never less for more. It may be asked for more than `most`.
  std::function<Seconds(const StepFacts&, double amount)> extra{};
  // What that means, as a figure that can be checked: "KV read at 2.7 GB/s, 1 % of DRAM's peak".
  std::function<std::string(const StepFacts&, double amount)> figure{};
};

// What the question states beside the steps, and what was measured.
struct DiagnosisEvidence {
  const DiagnosisQuestion& question;
  std::span<const StepFacts> steps;  // at least one, all of one model, machine and stack

  [[nodiscard]] const StepFacts& any() const { return steps.front(); }
  // Whether the host's part is Python's; other programs are compiled.
  [[nodiscard]] bool is_python() const;
  [[nodiscard]] bool is_decode() const { return any().asked.phase == Phase::decode; }
};

// All that can be asked of such a step.
[[nodiscard]] std::vector<CauseCandidate> cause_candidates(const DiagnosisEvidence& evidence);

// By what they slow down.
void add_host_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found);
void add_product_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found);
void add_placement_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found);
void add_attention_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found);
void add_expert_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found);
void add_serving_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found);

// A kernel that is `amount` + 1 times slower.
[[nodiscard]] inline Seconds slowed(Seconds time, double amount) { return amount * time; }

// To launch a kernel, one of the plan's: PyTorch's dispatch takes 5 us at best; an H100's host 20 us for two kernels
// (stacks/vllm-cuda.yaml), a slow one 25 us for each; where nothing is fused there are some four for one of the plan's,
// unless the stack counts them (kernels_per_op). Compiled programs launch in 2 to 10 us.
struct LaunchTimes {
  double least = 0, most = 0;
};
[[nodiscard]] LaunchTimes launch_times(const DiagnosisEvidence& evidence);

// A tenth slower is within anybody's noise.
inline constexpr double kLeastSlowdown = 0.1;

// "3.1 % of DRAM's peak (32 GB/s)"
[[nodiscard]] std::string share_of_dram(const StepFacts& facts, Bytes bytes, Seconds time);

}  // namespace dculab::study
