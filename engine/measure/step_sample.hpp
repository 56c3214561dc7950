// Some of the steps of a long run as a trace: each is as likely to be among them as any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "core/serving_loop.hpp"
#include "model/trace.hpp"

namespace dculab::engine {

class StepSample {
 public:
  // Of at most `most` >= 1 steps.
  StepSample(ModelShape model, EngineOptions options, std::size_t most)
      : model_(std::move(model)), options_(std::move(options)), most_(most) {}

  // Of a model with two sets of KV heads: what steps with the second are of.
  void set_few_heads(ModelShape model) { few_heads_ = std::move(model); }

  // `cold_share`: of Batch, when the step began.
  void add(const ServedStep& step, double cold_share = 0);

  // "step 17" and so on, counted from 1; a step lasts until its tokens are known, so scheduling and sampling are in it;
  // drafting is not.
  [[nodiscard]] const std::vector<TraceStep>& steps() const { return steps_; }

 private:
  ModelShape model_;
  EngineOptions options_;
  std::optional<ModelShape> few_heads_;
  std::size_t most_;
  std::uint64_t seen_ = 0;
  std::mt19937_64 random_{1};
  std::vector<TraceStep> steps_;
};

}  // namespace dculab::engine
