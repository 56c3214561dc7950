// Runs a step plan with the CPU kernels, and times every op of it.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/executors/expanded_kv.hpp"
#include "engine/executors/expert_exchange.hpp"
#include "engine/executors/expert_routing.hpp"
#include "engine/executors/head_runs.hpp"
#include "engine/executors/model_executor.hpp"
#include "engine/executors/plan_walk.hpp"
#include "engine/executors/rank_place.hpp"
#include "engine/executors/rope_table.hpp"
#include "engine/kv/cpu_kv_slice.hpp"
#include "engine/kv/kv_storage.hpp"
#include "engine/step/step_inputs.hpp"
#include "kernels/cpu/cpu_kernels.hpp"

namespace dculab::engine {

// The plan decides what runs: ops in its order, each by its kind, its weight slot and its buffers. After the first step
// of a size nothing is allocated but the StepResult.
class CpuExecutor final : public ModelExecutor {
 public:
  // Throws InputError when the kernels cannot run the model, or the KV cache does not fit in memory.
  // `place`: of an executor with a part of a model, among those that have the others (engine/parallel); all run the
  // same steps at the same time.
  CpuExecutor(ModelWeights weights, const KvCacheOptions& kv_cache, int num_threads, const RankPlace& place = {});

  // The same with threads that compute for others too, at other times: two pools would be in each other's way.
  CpuExecutor(ModelWeights weights, const KvCacheOptions& kv_cache, std::shared_ptr<kernels::cpu::ThreadPool> threads,
              const RankPlace& place = {});

  void copy_blocks(std::span<const BlockCopy> copies) override { kv_.copy_blocks(copies); }
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override { kv_.swap_blocks(out, in); }

  [[nodiscard]] std::size_t bytes_per_block() const override { return kv_.bytes_per_block(); }
  void read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) override { kv_.read_blocks(blocks, to); }
  void write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from) override {
    kv_.write_blocks(blocks, from);
  }
  void move_slots(std::span<const SlotMove> moves) override { kv_.move_slots(moves); }

  void forget(SequenceId id) override;

  // See KvStorage::fill_randomly.
  void fill_kv_cache(std::uint64_t seed) override;

  // Ops are always timed: it costs nothing.
  void set_op_timing(OpTiming) override {}

  // Throws InputError for token ids outside the vocabulary, and std::invalid_argument for a plan that was not made for
  // these weights, their dtype, this KV cache, and for a decode of several tokens where a KIVI cache or a retention
  // policy drops what could not be brought back.
  StepResult run(const StepPlan& plan) override;

  [[nodiscard]] std::span<const float> logits(int row) const override;
  void copy_last_hidden(std::span<const int> rows, std::span<float> out) const override;
  void keep_all_hidden() override;
  [[nodiscard]] std::span<const float> all_hidden() const override { return all_hidden_; }
  [[nodiscard]] std::unique_ptr<DraftHeads> make_draft_heads(const MedusaWeights& weights) override;
  [[nodiscard]] std::unique_ptr<ModelExecutor> with_few_heads(const ModelWeights& weights, int block_size) override;
  [[nodiscard]] const ModelShape& shape() const override { return weights_.shape; }
  [[nodiscard]] const KvCacheOptions& kv_cache() const override { return kv_.options(); }
  [[nodiscard]] ExpertHistogram take_expert_histogram() override { return routing_.take_histogram(); }
  [[nodiscard]] std::string device_name() const override;
  [[nodiscard]] std::string build_name() const override;
  [[nodiscard]] int num_threads() const override { return threads_.num_threads(); }
  [[nodiscard]] kernels::cpu::ThreadPool& threads() { return threads_; }  // while no op runs: for an observer
  // For tests: of a policy that a step has had; null without one.
  [[nodiscard]] const CpuKvSlice* kv_slice(RetentionPolicy policy) const;

  // For calibration, before each matmul, rope_and_cache and attention op: `input` is what it reads, [m, k]
  // of a matmul, [m, query_width + 2 * kv_width] of the others (Q, K, V, rotated once rope_and_cache has run). The
  // first product of experts reads [tokens, k]. Ops of latent attention are not shown.
  using OpObserver = std::function<void(const Op& op, int layer, std::span<const float> input)>;
  void observe_ops(OpObserver observer) { observer_ = std::move(observer); }

  // A step in pieces: run() is begin(), run_layer() for each layer, finish(). Between pieces the caller may keep the
  // hidden state of a batch and bring it back later, so that one layer is run on many batches before the next one is.
  struct HiddenState {
    std::vector<float> residual;       // [tokens, hidden_size]
    std::vector<float> projected;      // [tokens, hidden_size], not yet added to the residual
    std::vector<float> mlp_projected;  // likewise; empty unless attention and MLP stand side by side
  };
  void begin(const StepPlan& plan);
  void run_layer(const StepPlan& plan, int layer);
  void finish(const StepPlan& plan);
  [[nodiscard]] HiddenState hidden_state() const;
  void set_hidden_state(const HiddenState& state);

  // The weights may be exchanged between steps for others of the same shapes.
  [[nodiscard]] ModelWeights& weights() { return weights_; }

 private:
  friend struct OpDispatch;

  // `shared`: whose KV blocks these are, of an executor with fewer heads; null: its own.
  CpuExecutor(ModelWeights weights, const KvCacheOptions& kv_cache, std::shared_ptr<kernels::cpu::ThreadPool> threads,
              const RankPlace& place, const KvStorage* shared);

  void make_room(int tokens, int logits_rows);
  void run_stage(const StepPlan& plan, Stage stage, int layer);
  void observe(const Op& op, int layer) const;
  void execute_embedding(const Op& op);
  void execute_norm(const Op& op, int layer);
  void execute_qk_norm(const Op& op, int layer);
  void execute_residual_add(const Op& op, int layer);
  void execute_soft_cap(const Op& op);
  void execute_activation(const Op& op);
  void execute_rope_and_cache(const Op& op, int layer);
  void execute_matmul(const Op& op, int layer);
  void execute_route(const Op& op, int layer);
  void execute_expert_matmul(const Op& op, int layer);
  void execute_combine(const Op& op, int layer);
  [[nodiscard]] kernels::MatmulArgs bind_matmul(const Op& op, int layer) const;  // without x, y and m
  void execute_attention(const Op& op, int layer, Phase phase);
  // Latent attention. Rows of a part of a buffer: the first value of the first token, and values between tokens.
  struct Rows {
    float* first = nullptr;
    std::int64_t stride = 0;
  };
  [[nodiscard]] Rows latent_rows(const Op& op);
  [[nodiscard]] Rows query_rows(const Op& op);
  [[nodiscard]] const float* gathered_query_latents(const Op& op);
  void execute_latent_norm(const Op& op, int layer);
  void execute_latent_cache(const Op& op, int layer);
  void execute_expansion(const Op& op, int layer);
  void execute_absorption(const Op& op, int layer);
  void execute_latent_attention(const Op& op, int layer, Phase phase);
  void attend_expanded(const Op& op, int layer, Phase phase);
  // What executors that share a model exchange (cpu_exchange_bindings.cpp). Of a mixture whose experts are divided each
  // works on its own tokens beside attention.
  [[nodiscard]] bool is_of_own_tokens(const Op& op) const;
  [[nodiscard]] OwnTokens tokens_of(const Op& op) const;
  [[nodiscard]] bool has_expert_part(const Op& op) const;
  [[nodiscard]] float* values(Buffer buffer, const OwnTokens& tokens);
  void require_rows(const Op& op, int rows) const;
  void execute_partial_embedding(const Op& op);
  void gather_own_tokens(const Op& op);
  void gather_logits(const Op& op);
  // A norm of all heads together, of which each executor has some: sums of squares, and once they are added up the
  // rest.
  void sum_squares(const Op& op);
  void norm_by_sums(const Op& op, int layer);
  void execute_collective(const Op& op, int layer);
  void execute_token_exchange(const Op& op, int layer);
  void charge_waiting();
  void charge(const Op& op);  // the time since the last call is the op's
  // What formats and policies of the KV cache do (cpu_kv_bindings.cpp).
  void begin_kv(const StepPlan& plan);
  void execute_kv_op(const Op& op, int layer);
  [[nodiscard]] CpuKvLayer kv_layer(const Op& op, int layer);
  void check_attention(const Op& op, int num_seqs) const;
  [[nodiscard]] kernels::PagedAttentionArgs bind_attention(const Op& op, int layer, Phase phase);
  void keep_logits_rows();
  void norm_all_hidden();
  // [rows, width], F32; null where the model has no use for the buffer.
  [[nodiscard]] float* values(Buffer buffer) { return buffers_[index(buffer)].data(); }
  // The same with room for `rows` rows, which make_room() does not make.
  [[nodiscard]] float* make_rows(Buffer buffer, int rows);
  [[nodiscard]] int rows_of(const Op& op) const;

  ModelWeights weights_;
  KvStorage kv_;
  std::shared_ptr<kernels::cpu::ThreadPool> team_;
  kernels::cpu::ThreadPool& threads_;
  kernels::cpu::Workspace workspace_;
  // Where tokens stand, for layers of one kind.
  struct Positions {
    RopeTable rope;
    const float* cos_sin = nullptr;   // [>= inputs_.num_positions(), rotary_dim]; null with ALiBi
    std::vector<float> alibi_slopes;  // [num_attention_heads]; empty with rotary embedding
    std::vector<HeadRun> head_runs;   // where groups of query heads differ
  };
  std::vector<Positions> positions_;  // [kinds of layers]
  StepInputs inputs_;
  std::unique_ptr<CpuKvSlice> kv_format_;                               // null where its kernels need no help
  std::map<RetentionPolicy, std::unique_ptr<CpuKvSlice>> kv_policies_;  // that a step has had
  std::vector<CpuKvSlice*> kv_slices_;                                  // of this step
  bool makes_up_unseen_ = false;
  ExpertRouting routing_;
  RankPlace place_;
  ExpertExchange expert_exchange_;
  std::vector<TokenId> part_tokens_;       // of a part of the vocabulary
  std::vector<float> square_sums_;         // [tokens, 2]: of the values of Q and of K
  std::vector<float> gathered_logits_;     // [rows of logits, whole vocabulary]; of a part
  kernels::cpu::Workspace gathered_rows_;  // of one expert; the queries' latents
  ExpandedKv expanded_;
  const Op* expansion_ = nullptr;            // of the attention that comes next,
  kernels::MatmulArgs expansion_product_{};  // and its product
  Phase latent_phase_ = Phase::prefill;      // whose attention the ops that come belong to
  std::array<std::vector<float>, kBuffers> buffers_;
  const Op* first_op_ = nullptr;           // of the plan that runs
  std::optional<std::size_t> charged_op_;  // of the step, the last
  std::vector<Seconds> op_durations_;      // of the step so far
  std::chrono::steady_clock::time_point charged_until_{};
  OpObserver observer_;
  bool keeps_all_hidden_ = false;
  std::vector<float> all_hidden_, all_residual_;  // [tokens, hidden_size]
};

}  // namespace dculab::engine
