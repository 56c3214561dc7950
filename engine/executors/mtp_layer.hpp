// Runs DeepSeek's layer of multi-token prediction, with K and V of its own, on the CPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/checkpoint/mtp_checkpoint.hpp"
#include "engine/executors/cpu_executor.hpp"

namespace dculab::engine {

// At position i stand the token at i + 1 and the hidden state at i: of the model, what its head reads; or of the layer
// itself, when it guesses further than one token.
class MtpLayer {
 public:
  // Takes turns with whoever else computes with `threads`. Throws InputError as CpuExecutor.
  MtpLayer(MtpWeights weights, const KvCacheOptions& kv_cache, std::shared_ptr<kernels::cpu::ThreadPool> threads);

  // `hidden`: of the plan's tokens, [tokens, hidden_size]. The plan is one for shape().
  void run(const StepPlan& plan, std::span<const float> hidden);

  // Of the last run. Rows as ModelExecutor's; the token that follows the one at i + 1.
  [[nodiscard]] std::span<const float> logits(int row) const { return executor_.logits(row); }
  // The layer's own hidden state, before shared_head.norm, of a token of the plan: [hidden_size].
  [[nodiscard]] std::span<const float> hidden(int token) const;

  [[nodiscard]] const ModelShape& shape() const { return executor_.shape(); }
  [[nodiscard]] CpuExecutor& executor() { return executor_; }

 private:
  void normalize(const kernels::WeightView& weight, std::span<const float> rows, std::size_t first_column);

  kernels::WeightView enorm_, hnorm_, eh_proj_;
  CpuExecutor executor_;
  kernels::cpu::Workspace workspace_;
  std::vector<float> rows_, normed_;  // [tokens, hidden_size]
  std::vector<float> both_;           // [tokens, 2 * hidden_size]: of the embedding, of the hidden state
  CpuExecutor::HiddenState state_;
  std::vector<float> hidden_;  // [tokens, hidden_size]
};

}  // namespace dculab::engine
