// Medusa heads with the GPU kernels.
#pragma once

#include <memory>
#include <vector>

#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "engine/executors/draft_heads.hpp"
#include "engine/memory/device_memory.hpp"

namespace dculab::engine {

class GpuDraftHeads final : public DraftHeads {
 public:
  // Uploads the weights; `activation` is f16 or f32. Throws InputError where the kernels cannot run them.
  GpuDraftHeads(std::shared_ptr<kernels::gpu::Device> device, const MedusaWeights& weights, Dtype activation);

  [[nodiscard]] std::span<const TokenId> guess(std::span<const float> hidden, int width) override;
  [[nodiscard]] int num_heads() const override { return static_cast<int>(heads_.size()); }
  [[nodiscard]] int most_guesses() const override;

 private:
  struct Matrix {
    DeviceMemory values, bias;
    Dtype dtype = Dtype::f16;
    int rows = 0;
  };
  struct Head {
    std::vector<Matrix> layers;
    const Matrix* lm_head = nullptr;
  };

  [[nodiscard]] DeviceMemory uploaded(const void* values, std::size_t bytes);
  [[nodiscard]] Matrix upload(const kernels::WeightView& matrix, const kernels::WeightView& bias);
  void multiply(const Matrix& matrix, const DeviceMemory& x, kernels::gpu::Output y, int rows, int y_stride);
  void run(const Head& head, int rows);
  void guess_rows(std::span<const float> hidden, int width, std::span<TokenId> guesses);

  std::shared_ptr<kernels::gpu::Device> device_;
  Dtype activation_;
  int hidden_size_, num_rows_;
  std::vector<TokenId> token_map_;
  std::vector<std::unique_ptr<Matrix>> lm_heads_;  // those that heads share once
  std::vector<Head> heads_;
  // kRowsAtOnce of each.
  DeviceMemory hidden_, state_;  // F32, [hidden_size]: as they came; of the head that runs
  DeviceMemory input_, silu_;    // [hidden_size]
  DeviceMemory gate_up_;         // [2 * hidden_size], the second half ones: SiLU(gate) * 1
  DeviceMemory logits_;          // F32, [rows of lm_head]
  DeviceMemory values_;          // F32, [kMostGuesses]
  DeviceMemory indices_;         // [heads, kMostGuesses]
  std::vector<TokenId> guesses_, indices_on_host_;
};

}  // namespace dculab::engine
