// Runs a step plan with the CPU kernels, and times every op of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/llama_weights.hpp"
#include "engine/executors/model_executor.hpp"
#include "engine/executors/rope_table.hpp"
#include "engine/executors/step_inputs.hpp"
#include "engine/kv/kv_storage.hpp"
#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::engine {

// The plan decides what runs: ops in its order, each found by kind and name. After the first step of a size nothing is
// allocated but the StepResult.
class CpuExecutor final : public ModelExecutor {
 public:
  // Throws InputError when the kernels cannot run the model, or the KV cache does not fit in memory.
  CpuExecutor(LlamaWeights weights, const KvCacheOptions& kv_cache, int num_threads);

  void copy_blocks(std::span<const BlockCopy> copies) override { kv_.copy_blocks(copies); }

  // See KvStorage::fill_randomly.
  void fill_kv_cache(std::uint64_t seed) override { kv_.fill_randomly(seed); }

  // Ops are always timed: it costs nothing.
  void set_op_timing(OpTiming) override {}

  // Throws InputError for token ids outside the vocabulary, and std::invalid_argument for a plan that was not made for
  // these weights, their dtype, this KV cache.
  StepResult run(const StepPlan& plan) override;

  [[nodiscard]] std::span<const float> logits(int row) const override;
  [[nodiscard]] const ModelShape& shape() const override { return weights_.shape; }
  [[nodiscard]] const KvCacheOptions& kv_cache() const override { return kv_.options(); }
  [[nodiscard]] std::string device_name() const override;
  [[nodiscard]] std::string build_name() const override;
  [[nodiscard]] int num_threads() const { return threads_.num_threads(); }

 private:
  // Activations of a step, F32. tokens = new tokens of all sequences.
  struct Activations {
    std::vector<float> residual;   // [tokens, hidden_size]
    std::vector<float> normed;     // [tokens, hidden_size]
    std::vector<float> qkv;        // [tokens, query_width + 2 * kv_width]
    std::vector<float> attention;  // [tokens, query_width]
    std::vector<float> projected;  // [tokens, hidden_size]: what the next norm adds to the residual
    std::vector<float> gate_up;    // [tokens, 2 * intermediate_size]
    std::vector<float> activated;  // [tokens, intermediate_size]
    std::vector<float> logits;     // [logits rows, vocab_size]
  };

  void make_room(int tokens, int logits_rows);
  void run_stage(const StepPlan& plan, Stage stage, int layer, StepResult& result);
  void execute(const Op& op, int layer);
  void execute_norm(const Op& op, int layer);
  void execute_rope(const Op& op, int layer);
  void execute_matmul(const Op& op, int layer);
  void execute_attention(const Op& op, int layer, Phase phase);
  void keep_logits_rows();
  [[nodiscard]] kernels::MatmulArgs bind_matmul(const Op& op, int layer);

  LlamaWeights weights_;
  KvStorage kv_;
  kernels::cpu::ThreadPool threads_;
  kernels::cpu::Workspace workspace_;
  RopeTable rope_;
  StepInputs inputs_;
  Activations activations_;
  const float* cos_sin_ = nullptr;  // [>= inputs_.num_positions(), head_dim]
};

}  // namespace dculab::engine
