// Choices of KV heads and block size by their time, and what following a prediction of it would have cost.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace dculab::sim {

// Steps that differ by less are equally fast.
inline constexpr double kStepTie = 1e-3;

// What is being decided.
struct Choice {
  int kv_heads = 0;
  int block_size = 0;

  friend auto operator<=>(const Choice&, const Choice&) = default;
};

// The time of one choice on one workload (phase, batch, context: numbered by the caller).
struct ChoiceTime {
  Choice choice;
  std::size_t workload = 0;
  Seconds seconds;
};

struct ScoredChoice {
  Choice choice;
  Seconds seconds;  // geometric mean over the workloads
};

// Choices that have a time for every workload, fastest first; ties go to the smaller block, which wastes less.
[[nodiscard]] std::vector<ScoredChoice> rank_choices(std::span<const ChoiceTime> times);

struct Regret {
  Choice predicted_best;
  Choice measured_best;
  double regret = 0;        // measured time of predicted_best / of measured_best - 1
  double worst_single = 0;  // the largest regret when each workload is decided on its own
};

// What it costs to follow the predictions. Both lists hold the same choices and workloads. Nothing when no choice was
// measured on all workloads.
[[nodiscard]] std::optional<Regret> decision_regret(std::span<const ChoiceTime> predicted,
                                                    std::span<const ChoiceTime> measured);

}  // namespace dculab::sim
