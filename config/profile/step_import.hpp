// From the kernels of a profile to measured steps: medians over the repeated steps, op by op, and what was left over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/profile/kernel_map.hpp"
#include "config/profile/profile_file.hpp"
#include "model/trace.hpp"

namespace dculab::config {

enum class StepTime : std::uint8_t {
  period,  // until the next step begins: host time and sampling included, as an engine's tokens per second are
  span,    // until the step's own last kernel ends
};
[[nodiscard]] std::string_view name(StepTime time);

// Kernel time that no op stands for, as a share of the steps' kernel time: above it an import is refused.
inline constexpr double kMostOtherShare = 0.1;

// What the profiled engine ran. The profile does not know it.
struct ProfiledWork {
  ModelShape model;
  EngineOptions options;
  Phase phase = Phase::decode;
  int batch = 1;
  int context = 1024;  // tokens per sequence once the first imported step is done
  int new_tokens = 0;  // of a prefill, 0 = all of the context; a decode step has 1
  int growth = 0;      // tokens by which the context grows from one step to the next
};

struct ImportChoices {
  StepTime time = StepTime::span;
  int skip_steps = 0;     // whole steps at the beginning of the profile
  int steps = 0;          // steps to import, 0 = all
  int steps_per_row = 0;  // steps whose median makes a row of the trace, 0 = all
  double most_other = kMostOtherShare;
  std::vector<NamedKernels> named{};
};

struct OtherKernel {
  std::string name;
  std::string_view role;
  int count = 0;
  Seconds time;
};

struct ImportSummary {
  int steps_found = 0, steps_imported = 0;
  int op_kernels = 0, other_kernels = 0, outside_kernels = 0;  // of and within the imported steps; of everything else
  Seconds op_time, other_time, outside_time;
  std::vector<OtherKernel> others;       // within the imported steps, the longest first
  std::vector<double> kernels_per_step;  // [plan.ops.size()], 0 = fused into another op's kernels
  bool phase_is_told = true;             // false: the attention kernels serve prefill and decode under one name

  [[nodiscard]] double other_share() const { return other_time / (op_time + other_time); }
};

struct ImportedSteps {
  std::vector<TraceStep> rows;
  ImportSummary summary;
};

// Throws InputError when no whole step is found, when the choices leave none, when the context of the steps cannot be
// known, or when too much of their time serves no op.
[[nodiscard]] ImportedSteps import_steps(const Profile& profile, const ProfiledWork& work,
                                         const ImportChoices& choices);

}  // namespace dculab::config
