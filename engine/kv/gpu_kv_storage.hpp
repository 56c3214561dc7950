// KvStorage in the memory of a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/kv/kv_storage.hpp"
#include "engine/memory/device_memory.hpp"

namespace dculab::engine {

// Each layer holds K and V, each [num_blocks, num_key_value_heads, block_size, head_dim], allocated once.
class GpuKvStorage {
 public:
  // Throws InputError when the dtype is not f16, bf16, fp8_e4m3 or fp8_e5m2, or when the pool does not fit.
  GpuKvStorage(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& model, const KvCacheOptions& options);

  [[nodiscard]] kernels::KvCacheView layer(int index) const;
  [[nodiscard]] const KvCacheOptions& options() const { return options_; }

  // In order, in all layers.
  void copy_blocks(std::span<const BlockCopy> copies);

  void fill_randomly(std::uint64_t seed);

 private:
  void copy_independent_blocks(std::span<const BlockCopy> copies);

  std::shared_ptr<kernels::gpu::Device> device_;
  KvCacheOptions options_;
  int num_kv_heads_ = 0;
  int head_dim_ = 0;
  std::size_t block_bytes_ = 0;      // K (or V) of one block in one layer
  std::vector<DeviceMemory> pools_;  // [num_layers * 2]: K, V
  DeviceMemory pairs_;               // of copy_blocks
  std::vector<std::int32_t> host_pairs_;
};

}  // namespace dculab::engine
