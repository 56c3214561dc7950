// H2O (heavy_hitters.hpp) on a device: sums, positions and the choice of what goes stay there. The pass that adds to
// the sums also chooses, for each KV head, the slot that the sequence's next token takes; the write of that token reads
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "engine/kv/gpu_kv_slice.hpp"
#include "engine/memory/device_memory.hpp"

namespace dculab::engine {

class GpuHeavyHitters final : public GpuKvSlice {
 public:
  GpuHeavyHitters(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& shape, const GpuStepLimits& limits);

  // Throws std::invalid_argument when a sequence is full but was never seen.
  void begin(const StepPlan& plan, int block_size) override;

  // The slots of tokens that take another's place.
  void before_cache(kernels::gpu::ReshapeAndCache& args, int layer) override;

  // attention_scores.
  void execute(const Op& op, const GpuKvLayer& layer) override;

  // Its memory is kept for another sequence.
  void forget(SequenceId id) override;

  // Sequences that were never seen are full of tokens without attention.
  void make_up_unseen() override { makes_up_ = true; }

  // For tests: where the tokens of a sequence stand in its text, by their place in the block table: [capacity]. Where
  // it is full, the next token has its place already.
  [[nodiscard]] std::vector<std::int32_t> positions(SequenceId id, int layer, int kv_head) const;

 private:
  using State = kernels::gpu::HeavyHitterState;
  struct Sequence {
    DeviceMemory memory;  // next_slots, positions, sums
    State state;
  };

  void make_room(int capacity);
  [[nodiscard]] Sequence& find(const SequenceSlice& slice, const std::vector<BlockId>& blocks, int block_size);
  [[nodiscard]] Sequence make_sequence();
  void start_at(const Sequence& sequence, const SequenceSlice& slice, const std::vector<BlockId>& blocks,
                int block_size);
  [[nodiscard]] std::size_t num_rows() const {
    return static_cast<std::size_t>(num_layers_) * static_cast<std::size_t>(num_kv_heads_);
  }

  std::shared_ptr<kernels::gpu::Device> device_;
  GpuStepLimits limits_;
  int num_layers_, num_kv_heads_, longest_;
  int capacity_ = 0, window_ = 0;
  bool makes_up_ = false;
  std::map<SequenceId, Sequence> sequences_;
  std::vector<Sequence> spare_;  // of sequences that have ended

  // Of this step, on the host and on the device.
  std::vector<State> states_;                  // [sequences of the batch]
  std::vector<std::int32_t> next_positions_;   // the same
  std::vector<std::int64_t*> head_slots_;      // [num_tokens], null where a token replaces none
  std::vector<std::vector<std::byte>> begun_;  // of each sequence that begins: what is uploaded of its state
  bool takes_places_ = false;                  // any token does
  DeviceMemory device_states_, device_next_positions_, device_head_slots_;
};

}  // namespace dculab::engine
