// Runs a step plan with the GPU kernels: on a DCU or another GPU, or on the host for checking.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "engine/executors/gpu_buffers.hpp"
#include "engine/executors/gpu_expanded_kv.hpp"
#include "engine/executors/gpu_expert_routing.hpp"
#include "engine/executors/gpu_weights.hpp"
#include "engine/executors/model_executor.hpp"
#include "engine/kv/gpu_kv_slice.hpp"
#include "engine/kv/gpu_kv_storage.hpp"

namespace dculab::engine {

struct GpuExecutorOptions {
  Dtype activation_dtype = Dtype::f16;                       // f16 or f32
  ActivationMode activations = ActivationMode::exact;        // int8 weights: int8; all others: exact
  int partition_tokens = AttentionSplit{}.partition_tokens;  // of the plans to come: their partial results need room
  GpuStepLimits limits;
};

// Where tokens stand, for layers of one kind.
struct GpuPositions {
  DeviceMemory cos_sin;       // [positions, rotary_dim]: all that the model was trained on at least; or ALiBi's nothing
  DeviceMemory alibi_slopes;  // [num_attention_heads]; nothing with rotary embedding
};

// Weights are uploaded once; everything a step needs is allocated when the executor is made. One stream. Ops are timed
// with the device's events, a whole step with the host's clock.
class GpuExecutor final : public ModelExecutor {
 public:
  // Throws InputError when the kernels have no such activations, weights or KV cache, or the model does not fit on the
  // device.
  GpuExecutor(std::shared_ptr<kernels::gpu::Device> device, const ModelWeights& weights, const KvCacheOptions& kv_cache,
              const GpuExecutorOptions& options);
  ~GpuExecutor() override;

  void copy_blocks(std::span<const BlockCopy> copies) override { kv_.copy_blocks(copies); }
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override { kv_.swap_blocks(out, in); }
  [[nodiscard]] std::size_t bytes_per_block() const override { return kv_.bytes_per_block(); }
  void read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) override { kv_.read_blocks(blocks, to); }
  void write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from) override {
    kv_.write_blocks(blocks, from);
  }
  void move_slots(std::span<const SlotMove> moves) override { kv_.move_slots(moves); }
  void forget(SequenceId id) override;
  void fill_kv_cache(std::uint64_t seed) override;
  void set_op_timing(OpTiming timing) override { timing_ = timing; }

  // Throws as CpuExecutor::run does, std::invalid_argument for a step beyond the limits, and InputError for a head size
  // that no kernel is compiled for.
  StepResult run(const StepPlan& plan) override;

  [[nodiscard]] std::span<const float> logits(int row) const override;
  void copy_last_hidden(std::span<const int> rows, std::span<float> out) const override;
  [[nodiscard]] std::unique_ptr<DraftHeads> make_draft_heads(const MedusaWeights& weights) override;
  [[nodiscard]] const ModelShape& shape() const override { return shape_; }
  [[nodiscard]] const KvCacheOptions& kv_cache() const override { return kv_.options(); }
  [[nodiscard]] ExpertHistogram take_expert_histogram() override { return routing_.take_histogram(); }
  [[nodiscard]] int num_threads() const override { return 0; }
  [[nodiscard]] std::string device_name() const override { return device_->info().name; }
  [[nodiscard]] std::string build_name() const override;

 private:
  friend struct OpDispatch;

  void fill_inputs(const StepPlan& plan);
  void begin_kv(const StepPlan& plan);
  void reach_positions(int count);
  void run_stage(const StepPlan& plan, Stage stage, int layer);
  void execute_embedding(const Op& op);
  void execute_norm(const Op& op, int layer);
  void execute_qk_norm(const Op& op, int layer);
  void execute_residual_add(const Op& op, int layer);
  void execute_soft_cap(const Op& op);
  void rotate(const Op& op);
  void execute_matmul(const Op& op, int layer);
  void multiply_int8(const Op& op, const GpuMatrix& weights);
  [[nodiscard]] kernels::gpu::RouteTokens routed(const Op& op, int layer) const;
  void execute_route(const Op& op, int layer);
  void execute_expert_matmul(const Op& op, int layer);
  void execute_combine(const Op& op, int layer);
  void execute_activation(const Op& op);
  void execute_rope_and_cache(const Op& op, int layer);
  void execute_attention(const Op& op, int layer, Phase phase);
  [[nodiscard]] GpuAttention attention_of(const Op& op, int layer, Phase phase, const lower::AttentionTile& tile);
  [[nodiscard]] GpuKvLayer kv_layer_of(const Op& op, int layer);
  void execute_kv_op(const Op& op, int layer);
  // Latent attention. Rows of a part of a buffer: the first value of the first token, and values between tokens.
  struct Rows {
    kernels::gpu::Output first{};
    std::int64_t stride = 0;
  };
  [[nodiscard]] Rows latent_rows(const Op& op) const;
  [[nodiscard]] Rows query_rows(const Op& op) const;
  void execute_latent_norm(const Op& op, int layer);
  void execute_latent_cache(const Op& op, int layer);
  void execute_expansion(const Op& op, int layer);
  void execute_absorption(const Op& op, int layer);
  void execute_latent_attention(const Op& op, int layer, Phase phase);
  void attend_expanded(const Op& op, int layer, Phase phase);
  void expand(const GpuExpandedPart& part, int layer, Phase phase);
  void attend_to_expanded(const Op& op, const GpuExpandedPart& part, Phase phase);
  // Calls serve(first, count) for runs of the phase's sequences whose partial results fit into the workspace.
  template <class Serve>
  void for_decode_runs(const AttentionInputs& inputs, Serve&& serve) const;
  void keep_logits_rows();
  void begin_op(std::size_t index);  // of the plan: until the next one, time is its own
  void record_mark();
  [[nodiscard]] std::vector<Seconds> op_durations(const StepPlan& plan) const;
  [[nodiscard]] int rows_of(const Op& op) const;
  // Null where the model has no use for the buffer.
  [[nodiscard]] kernels::gpu::Input input(Buffer buffer) const;
  [[nodiscard]] kernels::gpu::Output output(Buffer buffer) const;
  // The same from a value on.
  [[nodiscard]] kernels::gpu::Output at(Buffer buffer, std::int64_t value) const;

  std::shared_ptr<kernels::gpu::Device> device_;
  ModelShape shape_;
  GpuExecutorOptions options_;
  GpuWeights weights_;
  GpuKvStorage kv_;
  GpuActivations activations_;
  int max_blocks_per_seq_;
  GpuStepInputs device_inputs_;
  std::vector<GpuPositions> positions_;                                 // [kinds of layers]
  int num_positions_ = 0;                                               // whose angles are on the device
  std::map<RetentionPolicy, std::unique_ptr<GpuKvSlice>> kv_policies_;  // that a plan has asked for; null: needs none
  GpuKvSlice* kv_slice_ = nullptr;                                      // of the policy of the step, if it has one
  bool makes_up_unseen_ = false;
  GpuExpertRouting routing_;
  GpuExpandedKv expanded_;
  const Op* expansion_ = nullptr;        // of the attention that comes next
  Phase latent_phase_ = Phase::prefill;  // whose attention the ops that come belong to
  std::size_t workspace_floats_ = 0;
  DeviceMemory workspace_;          // of split-k matmuls and of partitioned attention, one after the other
  const StepPlan* plan_ = nullptr;  // that runs
  StepInputs inputs_;
  std::vector<float> logits_;  // [logits_rows(limits), vocab_size]
  OpTiming timing_ = OpTiming::on;
  std::vector<std::unique_ptr<kernels::gpu::TimeMark>> marks_;  // before each executed op, and after the last
  std::vector<std::size_t> marked_ops_;                         // of the plan, in order of execution
};

template <class Serve>
void GpuExecutor::for_decode_runs(const AttentionInputs& inputs, Serve&& serve) const {
  int longest = 0;
  for (const std::int32_t context : inputs.context_lens) longest = std::max(longest, context);
  const std::int64_t of_one = lower::dculab_gpu::decode_partials(shape_, longest, options_.partition_tokens);
  const auto start_of = [&](int seq) { return inputs.query_start_loc[static_cast<std::size_t>(seq)]; };
  const std::int64_t fit =
      of_one == 0 ? start_of(inputs.num_seqs) : static_cast<std::int64_t>(workspace_floats_) / of_one;
  for (int first = 0, end = 0; first < inputs.num_seqs; first = end) {
    end = first + 1;  // the tokens of one sequence always fit
    while (end < inputs.num_seqs && start_of(end + 1) - start_of(first) <= fit) ++end;
    serve(first, end - first);
  }
}

}  // namespace dculab::engine
