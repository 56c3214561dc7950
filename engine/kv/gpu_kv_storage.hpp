// KvStorage in the memory of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/kv/kv_storage.hpp"
#include "engine/memory/device_memory.hpp"

namespace dculab::engine {

// Each layer holds K and V, each [num_blocks, num_key_value_heads, block_size, head_dim], allocated once; or latents
// alone, which are both. One that reads the K and V of an earlier layer holds nothing.
class GpuKvStorage {
 public:
  // Throws InputError when the dtype is not f16, bf16, fp8_e4m3 or fp8_e5m2, when kernels do not take latents in it, or
  // when a pool does not fit.
  GpuKvStorage(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& model, const KvCacheOptions& options);

  // What the layer reads: where it has no K and V of its own, those of its source.
  [[nodiscard]] kernels::KvCacheView layer(int index) const;
  [[nodiscard]] const KvCacheOptions& options() const { return options_; }

  // In order, in all layers.
  void copy_blocks(std::span<const BlockCopy> copies);

  // In order, in all layers: see Executor::move_slots.
  void move_slots(std::span<const SlotMove> moves);
  // See Executor::swap_blocks: neighbouring blocks of a layer's K, or V, in one copy. Waits until it is done.
  // Precondition: ids are below num_blocks and num_host_blocks.
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in);

  // See Executor::read_blocks. In the order of KvStorage, so that one device can hand over to another.
  [[nodiscard]] std::size_t bytes_per_block() const { return block_bytes_ * pools_.size(); }
  void read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) const;
  void write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from);

  void fill_randomly(std::uint64_t seed);

 private:
  // Of parts of the pools of equally many bytes each, numbered by where they lie.
  void copy_in_order(std::span<const BlockCopy> copies, std::size_t bytes);
  void copy_independent(std::span<const BlockCopy> copies, std::size_t bytes);
  [[nodiscard]] std::byte* at(const DeviceMemory& pool, BlockId block) const {
    return pool.as<std::byte>() + block_bytes_ * static_cast<std::size_t>(block);
  }

  std::shared_ptr<kernels::gpu::Device> device_;
  KvCacheOptions options_;
  int num_kv_heads_ = 0;
  int head_dim_ = 0, value_dim_ = 0;
  std::size_t block_bytes_ = 0;      // K (or V) of one block in one layer
  std::size_t num_tensors_ = 2;      // of a layer: K and V, or latents
  std::vector<int> owners_;          // [num_layers]: which of the layers with a cache of their own each reads
  std::vector<DeviceMemory> pools_;  // [owners * num_tensors_]
  HostMemory host_pools_;            // [owners * num_tensors_, num_host_blocks]
  DeviceMemory pairs_;               // of copy_blocks
  std::vector<std::int32_t> host_pairs_;
};

}  // namespace dculab::engine
