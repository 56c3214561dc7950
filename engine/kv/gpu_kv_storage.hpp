// KvStorage in the memory of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/kv/kv_storage.hpp"
#include "engine/memory/device_memory.hpp"

namespace dculab::engine {

// Each layer holds what its format has (kv_layouts.hpp), and what the policy keeps of the blocks, allocated once. One
// that reads the K and V of an earlier layer holds nothing.
class GpuKvStorage {
 public:
  // Throws InputError when the dtype is none that KvFeature::gpu goes with, when kernels do not take latents in it, or
  // when a pool does not fit.
  GpuKvStorage(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& model, const KvCacheOptions& options);

  // What the layer reads: where it has no K and V of its own, those of its source.
  [[nodiscard]] const kernels::KvCacheView& layer(int index) const {
    return views_[static_cast<std::size_t>(owners_[static_cast<std::size_t>(index)])];
  }
  // As KvStorage has it.
  [[nodiscard]] std::byte* beside_blocks(int index) const;
  [[nodiscard]] const KvCacheOptions& options() const { return options_; }

  // In order, in all layers.
  void copy_blocks(std::span<const BlockCopy> copies);

  // In order, in all layers: see Executor::move_slots.
  void move_slots(std::span<const SlotMove> moves);
  // See Executor::swap_blocks: neighbouring blocks of a layer's K, or V, in one copy. Waits until it is done.
  // Precondition: ids are below num_blocks and num_host_blocks.
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in);

  // See Executor::read_blocks. In the order of KvStorage, so that one device can hand over to another.
  [[nodiscard]] std::size_t bytes_per_block() const;
  void read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) const;
  void write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from);

  void fill_randomly(std::uint64_t seed);

 private:
  // A tensor of a layer.
  struct Pool {
    DeviceMemory memory;
    std::size_t bytes = 0;
    std::size_t block_bytes = 0;  // 0: not part of the blocks

    [[nodiscard]] std::byte* at(BlockId block) const {
      return memory.as<std::byte>() + block_bytes * static_cast<std::size_t>(block);
    }
  };
  // Of the pools: what copies are numbered by, from where a pool begins.
  enum class Unit : std::uint8_t { block, row };

  [[nodiscard]] std::vector<KvPart> parts_of(const KvCacheOptions& options) const;
  // Of a layer whose format's parts lie there. Without extras.
  [[nodiscard]] kernels::KvCacheView view_of(std::span<const std::span<std::byte>> parts,
                                             const KvCacheOptions& options) const;
  // `index`: in the model. The first `num_format_parts` are the format's.
  void add_layer(int index, std::span<const KvPart> parts, std::size_t num_format_parts);
  void copy_in_order(std::span<const BlockCopy> copies, Unit unit);
  void copy_independent(std::span<const BlockCopy> copies, Unit unit);

  std::shared_ptr<kernels::gpu::Device> device_;
  KvCacheOptions options_;
  int num_kv_heads_ = 0;
  int head_dim_ = 0, value_dim_ = 0;
  std::size_t num_tensors_ = 2;     // of a layer: K and V, or latents
  std::size_t pools_of_layer_ = 2;  // what the format has, then what the policy keeps beside the blocks
  bool keeps_beside_ = false;
  std::vector<int> owners_;                  // [num_layers]: which of the layers with a cache of their own each reads
  std::vector<kernels::KvCacheView> views_;  // [owners]
  std::vector<Pool> pools_;                  // [owners, pools_of_layer_]
  HostMemory host_pools_;                    // [pools], each [num_host_blocks]
  DeviceMemory pairs_;                       // of copy_blocks
  std::vector<std::int32_t> host_pairs_;
};

}  // namespace dculab::engine
