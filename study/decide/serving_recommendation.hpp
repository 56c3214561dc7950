// All that `dculab recommend` decides for a model on a machine, in the order of docs/reference/recommend.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "model/trace.hpp"
#include "sim/calibration/confidence.hpp"
#include "study/decide/batched_tokens.hpp"
#include "study/decide/expected_service.hpp"
#include "study/decide/fleet.hpp"
#include "study/decide/measured_accuracy.hpp"
#include "study/decide/measured_regret.hpp"
#include "study/decide/serving_decision.hpp"
#include "study/decide/speculation_advice.hpp"
#include "study/decide/stack_limits.hpp"

namespace dculab::study {

// What is asked besides the scenario.
struct RecommendationQuestion {
  config::Scenario scenario;
  bool any_kv_heads = false;
  std::optional<int> block_size;        // decided already
  std::optional<Dtype> kv_cache_dtype;  // decided already
  std::optional<int> sequences;         // that are served at a time, at most
  bool count_requests = false;          // the workload's own number of requests says nothing
  std::optional<Trace> trace;           // of steps that were measured on the machine
  std::optional<FleetOffer> offer;      // of devices, whose layout is then chosen; else as the scenario's deployment
  std::string decode_machine{};         // a name or a file: a question for recommend_disaggregated; else empty
};

// The best that a stack's kernels allow, all else as recommended. Nothing where it does not run.
struct StackChoice {
  StackLimits limits;
  std::optional<Candidate> best;
};

// Of one replica; the others are alike.
struct Recommendation {
  sim::ServingCase serving;
  std::string checkpoint;  // what a program loads: "Qwen/Qwen3-8B", or a folder
  int replicas = 1;
  std::optional<FleetChoice> fleet;       // where devices were offered
  std::vector<Decision> decisions;        // KV heads, KV dtype, block size, partition
  Decision kv_heads;                      // every number of them, the most first: what other group sizes would bring
  std::optional<AccuracyCurve> accuracy;  // where the scenario names it
  bool any_kv_heads = false;              // speed alone decides
  bool kv_dtype_asked = false;
  sim::Setting setting;
  sim::Served served;    // in closed form, as candidates are compared
  int max_num_seqs = 0;  // of each scheduler: served.batch, or more, so that requests wait less
  Seconds step;          // decode, at the mean context
  sim::Confidence confidence;
  StepBound bound;
  std::vector<std::string> refused;  // refused_kv()
  std::vector<StackChoice> stacks;
  BatchedTokensChoice batched_tokens;
  MemoryShare memory;
  std::optional<ExpectedService> expected;  // where devices were offered or a rate asked for, of a replica's requests
  // Where `expected` is in doubt and devices were offered for a rate: how many replicas leave none; else with how many
  // it was tried in vain.
  std::optional<int> replicas_without_doubt;
  std::optional<int> replicas_in_doubt;
  double offered_requests_per_second = 0;  // to a replica; 0: as the workload's file says
  bool offered_by_us = false;              // kOfferedShare of what is served steadily
  double slo_share = 0.9;                  // of the requests that should meet the slo
  std::optional<MeasuredRegret> measured;  // with a trace
  // Where the scenario has a speculative_config, of as many sequences as are served at a time. All else is chosen
  // without drafts.
  std::optional<DraftCandidates> drafts;

  [[nodiscard]] const char* kv_heads_by() const { return accuracy ? "accuracy" : any_kv_heads ? "speed" : "own"; }

  // Of a replica in closed form, which candidates are compared by.
  [[nodiscard]] double requests_per_second() const {
    return served.output_tokens_per_second / serving.load.output_tokens;
  }
  // With all that is recommended, simulated.
  [[nodiscard]] const BatchedTokens& tokens() const { return batched_tokens.candidates[batched_tokens.verdict.chosen]; }
};

// Throws InputError.
[[nodiscard]] Recommendation recommend_serving(const RecommendationQuestion& question, const std::string& machine);

}  // namespace dculab::study
