// Runs hand-made steps through an executor: the test says which sequence gets which tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/kv/table.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/gpu_executor.hpp"
#include "engine/parallel/ranked_executor.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {

using Logits = std::vector<float>;  // [vocab_size]

// Root mean square of a - b over that of b.
[[nodiscard]] inline double relative_error(const Logits& a, const Logits& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(double{a[i]} - double{b[i]}, 2);
    size += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(error / size);
}

struct StepperOptions {
  int block_size = 16;
  int num_threads = 2;
  Dtype kv_dtype = Dtype::f32;
  int num_tokens = 4096;  // that the KV cache holds
  ActivationMode activations = ActivationMode::exact;
  LatentForm prefill_latents = EngineOptions().prefill_latents, decode_latents = EngineOptions().decode_latents;
  KvRetention retention{};                           // that drops nothing
  Bytes expanded_kv = KvCacheOptions().expanded_kv;  // CPU only
  Division division{};                               // likewise
  // GPU only:
  Dtype activation_dtype = Dtype::f32;
  GpuStepLimits limits{.max_num_batched_tokens = 128, .max_num_seqs = 8};
  int partition_tokens = 512;
};

// Tokens that one sequence is given in a step.
struct Feed {
  SequenceId sequence = 0;
  Phase phase = Phase::prefill;
  std::vector<TokenId> tokens;
  int num_logits = 1;                       // of the last tokens
  int num_tree_tokens = 0;                  // of the context, the last
  std::vector<std::uint64_t> tree_masks{};  // [tokens] with a tree
};

class Stepper {
 public:
  // On the CPU.
  explicit Stepper(ModelWeights weights, StepperOptions options = {}) : Stepper(weights.shape, options) {
    executor_ = make_divided_executor({}, std::move(weights), kv_cache(options), engine_, options.num_threads,
                                      options.division);
  }

  // With the GPU kernels.
  Stepper(std::shared_ptr<kernels::gpu::Device> device, const ModelWeights& weights, StepperOptions options = {})
      : Stepper(weights.shape, options) {
    engine_.activation_dtype = options.activation_dtype;
    engine_.attention_split.partition_tokens = options.partition_tokens;
    options.limits.prefill_latents = options.prefill_latents;
    executor_ = std::make_unique<GpuExecutor>(std::move(device), weights, kv_cache(options),
                                              GpuExecutorOptions{.activation_dtype = options.activation_dtype,
                                                                 .activations = options.activations,
                                                                 .partition_tokens = options.partition_tokens,
                                                                 .limits = options.limits});
  }

  [[nodiscard]] StepPlan plan(const std::vector<Feed>& feeds) {
    Batch batch;
    for (const Feed& feed : feeds) {
      int& computed = computed_[feed.sequence];
      const int count = static_cast<int>(feed.tokens.size());
      batch.sequences.push_back({.id = feed.sequence,
                                 .phase = feed.phase,
                                 .num_computed_tokens = computed,
                                 .num_new_tokens = count,
                                 .num_logits = feed.num_logits,
                                 .num_tree_tokens = feed.num_tree_tokens});
      batch.tree_masks.insert(batch.tree_masks.end(), feed.tree_masks.begin(), feed.tree_masks.end());
      batch.token_ids.insert(batch.token_ids.end(), feed.tokens.begin(), feed.tokens.end());
      computed += count;
      batch.block_tables.push_back(blocks_for(feed.sequence, computed));
    }
    return plan_step(executor_->planned_model(), engine_, std::move(batch));
  }

  // The logits after the last tokens of each feed.
  std::vector<Logits> step(const std::vector<Feed>& feeds) {
    executor_->run(plan(feeds));
    int count = 0;
    for (const Feed& feed : feeds) count += feed.num_logits;
    std::vector<Logits> rows;
    for (int row = 0; row < count; ++row) {
      const auto logits = executor_->logits(row);
      rows.emplace_back(logits.begin(), logits.end());
    }
    return rows;
  }

  // Goes on behind the first `tokens` tokens of a sequence.
  void rewind(SequenceId sequence, int tokens) { computed_[sequence] = tokens; }

  // The slot of a token of a sequence.
  [[nodiscard]] std::int64_t slot(SequenceId sequence, int token) const {
    const std::int64_t block = blocks_.at(sequence)[static_cast<std::size_t>(token / engine_.block_size)];
    return block * engine_.block_size + token % engine_.block_size;
  }

  [[nodiscard]] ModelExecutor& executor() { return *executor_; }
  [[nodiscard]] const EngineOptions& engine() const { return engine_; }
  [[nodiscard]] std::vector<BlockId>& blocks(SequenceId sequence) { return blocks_[sequence]; }

 private:
  Stepper(const ModelShape& shape, const StepperOptions& options)
      : num_blocks_((options.num_tokens + options.block_size - 1) / options.block_size + 64) {
    engine_.block_size = options.block_size;
    engine_.kv_cache_dtype = options.kv_dtype;
    engine_.kv_retention = options.retention;
    engine_.weights = shape.layer_format();
    engine_.activations = options.activations;
    engine_.activation_dtype = Dtype::f32;
    engine_.prefill_latents = options.prefill_latents;
    engine_.decode_latents = options.decode_latents;
  }

  [[nodiscard]] KvCacheOptions kv_cache(const StepperOptions& options) const {
    return {.num_blocks = num_blocks_,
            .block_size = options.block_size,
            .dtype = options.kv_dtype,
            .expanded_kv = options.expanded_kv,
            .policy = options.retention.policy};
  }

  // Neighbouring blocks of a sequence lie apart: the stride is a prime that divides no number of blocks used here.
  const std::vector<BlockId>& blocks_for(SequenceId sequence, int tokens) {
    std::vector<BlockId>& blocks = blocks_[sequence];
    while (static_cast<int>(blocks.size()) * engine_.block_size < tokens)
      blocks.push_back(static_cast<BlockId>((std::int64_t{7919} * next_block_++) % num_blocks_));
    return blocks;
  }

  int num_blocks_;
  std::unique_ptr<ModelExecutor> executor_;
  EngineOptions engine_;
  std::map<SequenceId, int> computed_;
  std::map<SequenceId, std::vector<BlockId>> blocks_;
  std::int64_t next_block_ = 0;
};

inline TokenId best_token(const Logits& logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace dculab::engine
