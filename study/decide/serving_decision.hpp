// One decision of `dculab recommend`: the candidates in order of preference, which one to take, and when another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/workload.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/preference.hpp"

namespace dculab::study {

struct Candidate {
  std::string value;  // "fp8_e4m3"
  sim::Setting setting;
  sim::Served served{};
};

struct Decision {
  std::string what{};                   // "KV dtype"
  std::string key{};                    // of a scenario file: "kv_cache.dtype"
  Preference preference{};              // for a candidate that stands before the fastest
  std::vector<Candidate> candidates{};  // the preferred first
  std::vector<Evaluated> evaluated{};   // what each serves, output tokens per second
  bool by_requests = false;             // simulated ones; else in closed form
  Verdict verdict{};
  // Filled in when there is a runner-up:
  std::string difference{};             // of its attention: "more block-table look-ups"
  sim::Flips by_batch{}, by_context{};  // where a decode step alone decides otherwise than here
  bool step_agrees = true;              // here, a decode step alone decides as the whole load does

  [[nodiscard]] const Candidate& choice() const { return candidates[verdict.chosen]; }
  [[nodiscard]] const Candidate* runner_up() const {
    return verdict.runner_up ? &candidates[*verdict.runner_up] : nullptr;
  }
  // By how much the runner-up serves more. Precondition: there is one.
  [[nodiscard]] Cost margin() const {
    return study::difference(evaluated[verdict.chosen], evaluated[*verdict.runner_up]);
  }
};

// Serves the load with every candidate and decides: each at its own best batch or, where `at_a_time` is given, with
// that many sequences or as many as it can, for limits are set in steps that say nothing of a size. False when none can
// serve the load.
[[nodiscard]] bool decide(const sim::ServingCase& serving, Decision& decision, std::optional<int> at_a_time = {});

// The same by requests that are served, all there from the start, at most `batch` at a time, with each candidate that
// can serve the load. As before where the requests fit with none.
void decide_by_requests(const sim::ServingCase& serving, const sim::Deployment& deployment, RequestWorkload workload,
                        int batch, Decision& decision);

// Why none of the decision's candidates serves: "not one sequence fits beside the weights with KV in f16 or fp8_e4m3".
// Precondition: decide() said so.
[[nodiscard]] std::string why_none_serves(const Decision& decision);

// Adds difference and flips around `batch` sequences of the load's mean context.
void explain(const sim::ServingCase& serving, int batch, Decision& decision);

// Which of the choice and the runner-up a decode step alone prefers: true for the choice.
[[nodiscard]] bool step_prefers_choice(const sim::ServingCase& serving, const Decision& decision, int batch,
                                       int context);

// What limits most of a decode step with this setting, and from where on something else does.
struct StepBound {
  std::string name;
  sim::Flips by_batch, by_context;
  std::string below_batch, above_batch, below_context, above_context;  // what it is there
};
[[nodiscard]] StepBound bound_of(const sim::ServingCase& serving, const sim::Setting& setting, int batch);

}  // namespace dculab::study
