// Where K and V of all cached tokens lie: one pool of KV blocks per layer, and what belongs to the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/executor.hpp"
#include "engine/kv/kv_layouts.hpp"
#include "engine/memory/anonymous_memory.hpp"

namespace dculab::engine {

// Of each layer: which of the layers with a cache of their own it reads.
[[nodiscard]] std::vector<int> kv_owners(const ModelShape& model);

// Each layer holds K, then V, each [num_blocks, its num_key_value_heads, block_size, head_dim], or what the format's
// KvLayout has. A layer with latents holds these alone, [num_blocks, block_size, latent_width]: they are its K and its
// V. One that reads the K and V of an earlier layer holds nothing. What the policy keeps of the blocks is a layer's
// last. Fresh memory is zero.
class KvStorage {
 public:
  // Throws InputError when the CPU kernels do not serve the dtype with this model, or when it all exceeds the memory
  // that is available.
  KvStorage(const ModelShape& model, const KvCacheOptions& options);

  // The same blocks for a model with fewer KV heads in every layer, which hold as many times more tokens: both write to
  // one memory, and each block is of one of them. `options` are those of `shared` but for the block size and what is
  // known of the model's K and V. Throws InputError for a model whose blocks would have other bytes.
  KvStorage(const ModelShape& model, const KvCacheOptions& options, const KvStorage& shared);

  // What the layer reads: where it has no K and V of its own, those of its source.
  [[nodiscard]] const kernels::KvCacheView& layer(int index) const {
    return layers_[static_cast<std::size_t>(owners_[static_cast<std::size_t>(index)])].view;
  }
  // Of the same, what the policy keeps of each block, block after block; null where it keeps nothing.
  [[nodiscard]] std::byte* beside_blocks(int index) const;
  [[nodiscard]] const KvCacheOptions& options() const { return options_; }

  // In order, in all layers.
  void copy_blocks(std::span<const BlockCopy> copies);

  // In order, in all layers: see Executor::move_slots. Throws std::invalid_argument where tokens are quantized
  // together, and where the policy keeps something of whole blocks.
  void move_slots(std::span<const SlotMove> moves);

  // See Executor::swap_blocks. Precondition: ids are below num_blocks and num_host_blocks; the dtype does not
  // quantize tokens together.
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in);

  // See Executor::read_blocks. Preconditions: as of swap_blocks; as many bytes as the blocks have.
  [[nodiscard]] std::size_t bytes_per_block() const;  // in all layers
  void read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) const;
  void write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from);

  // Values in [-1, 1) everywhere: for measuring without a prefill. Untouched memory would not do, the system backs it
  // with a single page of zeros that never leaves the cache.
  void fill_randomly(std::uint64_t seed);

 private:
  // A layer with a cache of its own.
  struct Layer {
    int index = 0;  // in the model
    std::vector<KvPart> parts{};
    std::size_t num_format_parts = 0;            // the first: the format's own
    std::vector<std::span<std::byte>> memory{};  // of each part
    kernels::KvCacheView view{};
    [[nodiscard]] std::span<const std::span<std::byte>> format_memory() const {
      return std::span(memory).first(num_format_parts);
    }
    [[nodiscard]] bool keeps_beside() const { return parts.size() > num_format_parts; }
  };
  void lay_out(const ModelShape& model);
  [[nodiscard]] std::size_t bytes() const;  // of all layers
  void take_memory(bool has_latents);
  void move_slot(const Layer& layer, std::size_t part, const SlotMove& move);
  // Calls move(here, bytes) for each part of a block, layer after layer.
  template <class Move>
  void for_each_piece(BlockId block, Move&& move) const;

  KvCacheOptions options_;
  const KvLayout& layout_;
  std::vector<int> owners_;  // [num_layers]: which of layers_ each reads
  std::vector<Layer> layers_;
  std::shared_ptr<AnonymousMemory> memory_;       // [layers_][parts]
  std::shared_ptr<AnonymousMemory> host_memory_;  // [num_host_blocks][layers_][block of each part]
};

}  // namespace dculab::engine
