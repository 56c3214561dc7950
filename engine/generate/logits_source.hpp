// Samples from the logits that the executor has just computed.
#pragma once

#include "core/serving_loop.hpp"
#include "engine/executors/model_executor.hpp"
#include "engine/sampling/draft_acceptance.hpp"
#include "engine/sampling/sampler.hpp"

namespace dculab::engine {

class LogitsSource final : public TokenSource {
 public:
  // `few_heads`: of a model with two sets of KV heads, who computes with the second.
  explicit LogitsSource(const ModelExecutor& executor, const SpeculativeConfig& config = {},
                        const ModelExecutor* few_heads = nullptr)
      : executor_(executor), few_heads_(few_heads), judge_(config) {}

  TokenId next_token(const Sequence& sequence, int logits_row) override {
    const ModelExecutor& executor = sequence.head_set == HeadSet::few ? *few_heads_ : executor_;
    return sampler_.sample(executor.logits(logits_row), sequence.request.sampling,
                           static_cast<std::uint64_t>(sequence.num_tokens()));
  }

  Verdict judge(const Sequence& sequence, const DraftTree& draft, int first_row) override {
    return judge_.judge(draft, sequence.request.sampling, static_cast<std::uint64_t>(sequence.num_tokens()),
                        [this, first_row](int row) { return executor_.logits(first_row + row); });
  }

 private:
  const ModelExecutor& executor_;
  const ModelExecutor* few_heads_;
  Sampler sampler_;
  DraftJudge judge_;
};

}  // namespace dculab::engine
