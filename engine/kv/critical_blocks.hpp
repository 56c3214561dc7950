// Quest: which blocks a decode's attention loads, in each layer and KV head.
//
// Bounds of keys lie beside the blocks, so whoever copies, swaps or shares blocks has them too. Prefills update them
// and attend to everything.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/batch.hpp"
#include "core/kv/retention.hpp"
#include "engine/kv/cpu_kv_slice.hpp"
#include "kernels/kv/critical_blocks.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

class CriticalBlocks final : public CpuKvSlice {
 public:
  explicit CriticalBlocks(const ModelShape& shape)
      : num_kv_heads_(shape.heads().num_key_value_heads), query_width_(shape.heads().query_width()) {}

  void begin(const StepPlan& plan, int block_size) override;

  // update_block_bounds, choose_critical_blocks.
  void execute(const Op& op, const CpuKvLayer& layer) override;

  // Decodes: to the blocks that were chosen last. Throws std::invalid_argument where the step has chosen none.
  void narrow(kernels::PagedAttentionArgs& args, Phase phase) const override;

  // For tests: what was chosen last, with the places of the blocks in their sequences.
  [[nodiscard]] const kernels::ChosenBlocks& chosen() const { return chosen_; }
  // For tests: what the lists, bounds and queries of the sequences take.
  [[nodiscard]] std::size_t bytes() const {
    return sizeof(float) * (upper_bounds_.size() + queries_.size()) +
           sizeof(std::int32_t) * (places_.size() + tables_.size() + contexts_.size() + starts_.size());
  }

 private:
  void add_sequence(const SequenceSlice& slice, const KvRetention& retention, int block_size);
  void make_room();
  void update(const Op& op, const CpuKvLayer& layer);
  void choose(const Op& op, const CpuKvLayer& layer);

  int num_kv_heads_, query_width_;

  // Of this step, in the order of the batch.
  // [sequences of the phase + 1]: tokens whose K and V are written. Those that others have written are in the bounds.
  std::array<std::vector<std::int32_t>, 2> written_;
  std::vector<std::int32_t> budgets_;  // [decodes] blocks
  int recent_blocks_ = 1;

  // Of the layer that was chosen for last.
  std::vector<float> upper_bounds_, queries_;
  std::vector<std::int32_t> places_, tables_, contexts_, starts_;
  kernels::ChosenBlocks chosen_{};
  bool has_chosen_ = false;
};

}  // namespace dculab::engine
