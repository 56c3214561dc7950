// H2O: which cached token each KV head of each layer gives up for a new one.
//
// Zhang et al. (arXiv:2306.14048): the tokens that got the most attention so far, summed over queries, and the most
// recent ones stay. Once a sequence has all its slots, a new token takes the slot of the one with the smallest sum
// among those outside the window of recent ones; of equal sums, of the oldest. The heads of a group share K and V, so
// their sums are added.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/kv/retention.hpp"
#include "engine/kv/cpu_kv_slice.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

class HeavyHitters final : public CpuKvSlice {
 public:
  explicit HeavyHitters(const ModelShape& shape)
      : num_layers_(shape.num_layers()),
        num_kv_heads_(shape.heads().num_key_value_heads),
        longest_(shape.max_position_embeddings) {}

  // Throws std::invalid_argument when a sequence is full but was never seen.
  void begin(const StepPlan& plan, int block_size) override;

  // Chooses the slots of the new tokens of a layer, for each KV head.
  void before_cache(kernels::RopeAndCacheArgs& args, int layer) override { args.head_slots = place(layer); }

  // attention_scores: adds to the sums what the new tokens attend to.
  void execute(const Op& op, const CpuKvLayer& layer) override;

  void forget(SequenceId id) override { sequences_.erase(id); }

  // Sequences that were never seen are full of tokens without attention.
  void make_up_unseen() override { makes_up_ = true; }

  // For tests: what before_cache and execute ask for.
  [[nodiscard]] const std::int64_t* place(int layer);  // [num_tokens, num_kv_heads]
  // Of `count` sequences from the `first` of the batch on: their sums in a layer, as
  // kernels::AttentionScoresArgs::sums.
  [[nodiscard]] float* const* sums(int layer, int first, int count);
  [[nodiscard]] int capacity() const { return capacity_; }

  // For tests: where the tokens of a sequence stood in its text, by their place in the block table: [capacity()].
  [[nodiscard]] std::span<const std::int32_t> positions(SequenceId id, int layer, int kv_head) const;

 private:
  struct Sequence {
    std::vector<float> sums;              // [num_layers, num_kv_heads, capacity]
    std::vector<std::int32_t> positions;  // the same shape
  };

  [[nodiscard]] std::size_t row(int layer, int kv_head) const {
    return (static_cast<std::size_t>(layer) * static_cast<std::size_t>(num_kv_heads_) +
            static_cast<std::size_t>(kv_head)) *
           static_cast<std::size_t>(capacity_);
  }
  [[nodiscard]] Sequence& find(const SequenceSlice& slice);
  [[nodiscard]] int choose(const float* sums, const std::int32_t* positions, int position) const;
  void place_slice(int layer, std::size_t index, std::int64_t* slots);

  int num_layers_, num_kv_heads_, longest_;
  int capacity_ = 0, window_ = 0, block_size_ = 1;
  bool makes_up_ = false;
  std::map<SequenceId, Sequence> sequences_;

  // Of this step.
  const Batch* batch_ = nullptr;
  std::vector<Sequence*> in_batch_;    // [sequences of the batch]
  std::vector<std::int64_t> slots_;    // [num_tokens, num_kv_heads]
  std::vector<float*> sums_of_layer_;  // [sequences of a call]
};

}  // namespace dculab::engine
