// Samples from the logits that the executor has just computed.
#pragma once

#include "core/serving_loop.hpp"
#include "engine/executors/model_executor.hpp"
#include "engine/sampling/sampler.hpp"

namespace dculab::engine {

class LogitsSource final : public TokenSource {
 public:
  explicit LogitsSource(const ModelExecutor& executor) : executor_(executor) {}
  TokenId next_token(const Sequence& sequence, int logits_row) override {
    return sampler_.sample(executor_.logits(logits_row), sequence.request.sampling,
                           static_cast<std::uint64_t>(sequence.num_tokens()));
  }

 private:
  const ModelExecutor& executor_;
  Sampler sampler_;
};

}  // namespace dculab::engine
