// How long a request takes alone, measured: what slo.slowdown compares with.
#pragma once

#include <functional>
#include <vector>

#include "core/workload.hpp"
#include "engine/generate/open_model.hpp"

namespace dculab::engine {

// Serves requests of a few prompt lengths, from the workload's shortest to its longest, each alone and with as many
// output tokens as the workload's longest answer. The time until token n is the latency of an answer of n tokens.
// Prompt lengths in between are interpolated. Nothing of a prompt is cached.
class MeasuredAloneLatency {
 public:
  // Runs the requests. `options` are those the model is served with. Precondition: problems(workload) is empty.
  MeasuredAloneLatency(OpenModel& model, const EngineOptions& options, const RequestWorkload& workload);

  // Precondition: both are at least 1, and no more than the workload's longest.
  [[nodiscard]] Seconds latency(int prompt_tokens, int output_tokens) const;

  // From arrival to each token.
  struct Run {
    int prompt_tokens = 0;
    std::vector<Seconds> until_token{};  // [tokens generated]
  };
  explicit MeasuredAloneLatency(std::vector<Run> runs) : runs_(std::move(runs)) {}

 private:
  std::vector<Run> runs_;  // in ascending order of prompt_tokens
};

}  // namespace dculab::engine
