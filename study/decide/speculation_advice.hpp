// What drafts are worth, and how many tokens to draft: a step that verifies them against one without, at a batch.
//
//   speed-up = expected tokens of a step * plain step / (verify step + drafting)      sim/speculation/acceptance.hpp
//
// Steps are priced, or what somebody measured: judge() takes either. The interval is that of prices: how far the ratio
// of the two may be off when each figure of the machine is, all of them wrong alike in both; how often tokens are
// accepted is taken as given.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/draft_tree.hpp"
#include "sim/speculation/draft_work.hpp"

namespace dculab::study {

// What is drafted for, where.
struct DraftQuestion {
  sim::Machine machine;
  ModelShape model;       // whole
  ModelShape part;        // what each device has of it
  EngineOptions options;  // the shape of its speculative_config is whatever is asked about
  sim::ReplicaDevices devices;
  sim::Speculation speculation;
  int context = 1024;  // of each sequence, with the token that a plain step adds
};

// Of the scenario, for options that have its speculative_config; nothing where that drafts nothing. Throws InputError.
[[nodiscard]] std::optional<DraftQuestion> draft_question(const config::Scenario& scenario, const sim::Machine& machine,
                                                          const ModelShape& model, const ModelShape& part,
                                                          const EngineOptions& options, int context);

struct DraftedTimes {
  Seconds plain;     // a step of one token of each sequence
  Seconds verify;    // a step that verifies a draft of each
  Seconds drafting;  // before it
};

struct DraftOutcome {
  DraftShape shape;
  int batch = 1;
  double tokens = 1;  // expected, of a sequence and step
  DraftedTimes times;
  double speed_up = 1;
  double low = 1, high = 1;  // 90 %; both speed_up where times were measured
  bool fits = true;          // the batch, in memory, with the drafter beside the model
};

[[nodiscard]] DraftedTimes priced_times(const DraftQuestion& question, const DraftShape& shape, int batch);

// With prices.
[[nodiscard]] DraftOutcome judge(const DraftQuestion& question, const DraftShape& shape, int batch);
// With what was measured.
[[nodiscard]] DraftOutcome judge(const DraftQuestion& question, const DraftShape& shape, int batch,
                                 const DraftedTimes& measured);

// Of the drafter on a device.
[[nodiscard]] sim::DraftMemory draft_memory(const DraftQuestion& question);

// Up to which batch drafts of a shape pay, of those that fit in memory with the drafter, and at most kLargestBreakEven.
inline constexpr int kLargestBreakEven = 4096;
struct BreakEven {
  int batch = 0;        // 0: they pay at none
  bool is_all = false;  // they pay at all that fit

  friend bool operator==(const BreakEven&, const BreakEven&) = default;
};
[[nodiscard]] BreakEven break_even(const DraftQuestion& question, const DraftShape& shape);

// The best of `outcomes`, an index: of those that are within kAlikeSpeedUp of the largest speed-up the one with the
// fewest drafted tokens; nothing where none is above 1. Those that do not fit come last.
inline constexpr double kAlikeSpeedUp = 0.005;
[[nodiscard]] std::optional<std::size_t> best_draft(std::span<const DraftOutcome> outcomes);

// Chains of 1 to 8 tokens, and the question's own draft where it is a tree.
struct DraftCandidates {
  std::vector<DraftOutcome> outcomes;
  BreakEven break_even{};  // of the question's own draft
};
[[nodiscard]] DraftCandidates judge_candidates(const DraftQuestion& question, int batch);

}  // namespace dculab::study
