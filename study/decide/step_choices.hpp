// Which KV heads and block size a sweep of steps chooses on a machine.
//
//   a choice's figure = steps per second, the geometric mean over the workloads; nothing where a workload's sequences
//                       do not fit in memory with it, unless they fit with none
//   KV heads          = of those that are allowed, the most that cost no more than is given up; where none are named,
//                       the model's own, since the accuracy of others is not known
//   block size        = with these KV heads, by the rule of preference.hpp: the stack's usual one stands first, then
//                       the smaller, which waste fewer slots
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/hardware/stack.hpp"
#include "sim/study/recommend.hpp"
#include "study/decide/preference.hpp"

namespace dculab::study {

struct PricedChoice {
  sim::Choice choice;
  std::size_t workload = 0;  // numbered by the caller
  Seconds seconds;
  std::vector<double> shifts{};  // of log(seconds): sim::prior_shifts
  bool fits = true;
};

using EvaluatedChoices = std::map<sim::Choice, Evaluated>;

// Those that have a price for every workload.
[[nodiscard]] EvaluatedChoices over_workloads(std::span<const PricedChoice> prices);

// Which KV heads there may be, by what they may cost.
struct AllowedHeads {
  std::vector<int> kv_heads;
  double given_up = kAccuracyTie;  // speed, for the most of them
};

struct Contest {
  std::vector<sim::Choice> choices;  // the preferred first
  std::vector<Evaluated> evaluated;
  Verdict verdict{};
};

struct StepDecision {
  sim::Choice choice;
  sim::Choice fastest;
  Contest blocks;             // with the chosen KV heads
  Contest kv_heads;           // with the chosen block size, the most first
  std::vector<bool> front{};  // of kv_heads: those than which none with as many KV heads is faster
};

// Nothing where no choice can be had.
[[nodiscard]] std::optional<StepDecision> decide_steps(const EvaluatedChoices& choices, int own_kv_heads,
                                                       int usual_block_size,
                                                       const std::optional<AllowedHeads>& allowed);

// Whether each of `evaluated`, the most KV heads first, is faster than all that keep more.
[[nodiscard]] std::vector<bool> speed_front(std::span<const Evaluated> evaluated);

// The usual one of a stack first, then by size.
[[nodiscard]] std::vector<int> by_preference(std::vector<int> block_sizes, int usual);

}  // namespace dculab::study
