// Attention sinks (sinks.hpp) on a device: the first keys of each sequence stay there as they were before any rotation,
// and are written anew where they stand now.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/batch.hpp"
#include "engine/kv/gpu_kv_slice.hpp"
#include "engine/memory/device_memory.hpp"

namespace dculab::engine {

class GpuSinkKeys final : public GpuKvSlice {
 public:
  GpuSinkKeys(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& shape, const GpuStepLimits& limits);

  // Throws std::invalid_argument when a sequence's sinks have to move but were never seen.
  void begin(const StepPlan& plan, int block_size) override;

  // Keeps the sinks among the new tokens.
  void before_rotation(const GpuNewKv& kv, int layer) override;

  // shift_sink_keys.
  void execute(const Op& op, const GpuKvLayer& layer) override;

  // Its memory is kept for another sequence.
  void forget(SequenceId id) override;

  // Sequences whose sinks were never seen have zeros for them.
  void make_up_unseen() override { makes_up_ = true; }

 private:
  void make_room();
  [[nodiscard]] float* rows_of(SequenceId id);
  void add_arrival(const SequenceSlice& slice, int first_token);
  void add_move(const SequenceSlice& slice, const std::vector<BlockId>& blocks, int block_size);

  std::shared_ptr<kernels::gpu::Device> device_;
  GpuStepLimits limits_;
  int num_layers_, kv_width_;
  Position position_;
  int sink_tokens_ = 0;
  bool makes_up_ = false;
  std::map<SequenceId, DeviceMemory> kept_;  // [num_layers, sink_tokens, 2 * kv_width], F32
  std::vector<DeviceMemory> spare_;          // of sequences that have ended

  // Of this step, on the host and on the device.
  std::vector<std::int32_t> arriving_;   // [new tokens that are sinks]: which of the step's tokens
  std::vector<float*> arrivals_;         // the same: where they are kept, of layer 0
  std::vector<const float*> moving_;     // [sinks that move]: where they are kept, of layer 0
  std::vector<std::int32_t> positions_;  // the same: where they stand now
  std::vector<std::int64_t> slots_;      // the same: where they are written
  DeviceMemory device_arriving_, device_arrivals_, device_moving_, device_positions_, device_slots_;
};

}  // namespace dculab::engine
