// Medusa heads with the CPU kernels.
#pragma once

#include <vector>

#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "engine/executors/draft_heads.hpp"
#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::engine {

class CpuDraftHeads final : public DraftHeads {
 public:
  // `threads` outlives it, and runs nothing else during a call.
  CpuDraftHeads(const MedusaWeights& weights, kernels::cpu::ThreadPool& threads)
      : weights_(weights), threads_(threads) {}

  [[nodiscard]] std::span<const TokenId> guess(std::span<const float> hidden, int width) override;
  [[nodiscard]] int num_heads() const override { return weights_.num_heads(); }
  [[nodiscard]] int most_guesses() const override { return weights_.num_rows(); }

 private:
  void multiply(const kernels::WeightView& matrix, const float* bias, const std::vector<float>& x,
                std::vector<float>& y, int rows);
  void run(const MedusaHead& head, std::span<const float> hidden, int rows);

  MedusaWeights weights_;
  kernels::cpu::ThreadPool& threads_;
  kernels::cpu::Workspace workspace_;
  std::vector<float> state_, projected_;  // [rows, hidden_size]
  std::vector<float> logits_;             // [rows, rows of the head]
  std::vector<TokenId> guesses_;
};

// The indices of the `wanted.size()` largest values, the largest first, of equal ones the lower first. Precondition: no
// more are wanted than there are.
void largest_indices(std::span<const float> values, std::span<TokenId> wanted);

}  // namespace dculab::engine
