// Critical blocks (critical_blocks.hpp) on a device: bounds, the choice and the lists of blocks stay there. What the
// choice needs is allocated for as many decodes as a step can have, each of the longest text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "core/kv/retention.hpp"
#include "engine/kv/gpu_kv_slice.hpp"
#include "engine/memory/device_memory.hpp"
#include "kernels/kv/critical_blocks.hpp"

namespace dculab::engine {

class GpuCriticalBlocks final : public GpuKvSlice {
 public:
  GpuCriticalBlocks(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& shape, const GpuStepLimits& limits,
                    int max_blocks_per_seq);

  void begin(const StepPlan& plan, int block_size) override;

  // update_block_bounds, choose_critical_blocks.
  void execute(const Op& op, const GpuKvLayer& layer) override;

  void narrow(kernels::gpu::PagedAttention& args, int first) const override;

 private:
  void make_room(const KvRetention& retention);
  void add_sequence(const SequenceSlice& slice, const KvRetention& retention, int block_size);
  void update(const Op& op, const GpuKvLayer& layer);
  void choose(const Op& op, const GpuKvLayer& layer);
  [[nodiscard]] std::size_t num_lists() const {
    return static_cast<std::size_t>(max_num_seqs_) * static_cast<std::size_t>(num_kv_heads_);
  }

  std::shared_ptr<kernels::gpu::Device> device_;
  int max_num_seqs_, max_blocks_per_seq_, num_kv_heads_, query_width_;
  int listed_blocks_ = 0;  // of a sequence, that there is room for

  // Of this step, in the order of the batch; on the host and on the device.
  // [sequences of the phase + 1]: tokens whose K and V are written. Those that others have written are in the bounds.
  std::array<std::vector<std::int32_t>, 2> written_;
  std::vector<std::int32_t> budgets_;  // [decodes] blocks
  std::array<DeviceMemory, 2> device_written_;
  DeviceMemory device_budgets_;
  std::array<int, 2> longest_written_{};                     // tokens of a sequence
  int recent_blocks_ = 1, stride_ = 0, longest_chosen_ = 0;  // longest_chosen: tokens

  // Of the layer that was chosen for last.
  DeviceMemory upper_bounds_;       // [max_num_seqs, KV heads, max_blocks_per_seq]
  DeviceMemory tables_, contexts_;  // [max_num_seqs, KV heads, listed_blocks], [max_num_seqs, KV heads]
  DeviceMemory queries_;            // [max_num_seqs, query_width], F32 or F16
  kernels::ChosenBlocks chosen_{};
};

}  // namespace dculab::engine
