// Where K and V of all cached tokens lie: one pool of KV blocks per layer, and what belongs to the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/executor.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "kernels/ops.hpp"
#include "lower/dculab_cpu/expanded_kv.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

struct KvCacheOptions {
  int num_blocks = 0;
  int block_size = 16;        // tokens
  Dtype dtype = Dtype::f16;   // CPU: f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, kivi4 or kivi2
  int max_num_seqs = 256;     // kivi4, kivi2: sequences of a step
  int residual_tokens = 128;  // kivi4, kivi2: of each of them, in F16
  int num_host_blocks = 0;    // for swapped sequences
  // CPU, latents: of K and V that they expand to at a time; more where the fewest heads of one sequence have more.
  Bytes expanded_kv = lower::dculab_cpu::kMostExpanded;
};

// Bytes of K and V, or of latents, of one block in all layers, scales included.
[[nodiscard]] Bytes kv_block_bytes(const ModelShape& model, int block_size, Dtype dtype);

// All layers have the same heads in the KV cache. Throws InputError for a model whose layers have different ones, or
// none.
void require_equal_heads(const ModelShape& model);

// All layers have heads of one size in the KV cache, however many. Throws InputError likewise.
void require_equal_head_dims(const ModelShape& model);

// Of each layer: which of the layers with a cache of their own it reads.
[[nodiscard]] std::vector<int> kv_owners(const ModelShape& model);

// Each layer holds K, then V, each [num_blocks, its num_key_value_heads, block_size, head_dim] (kivi4, kivi2: records,
// see kernels/kv/kivi.hpp); int8 also the scales of K, then of V; kivi4 and kivi2 the residuals of K, then of V. A layer
// with latents holds these alone, [num_blocks, block_size, latent_width]: they are its K and its V. One that reads the
// K and V of an earlier layer holds nothing. Fresh memory is zero.
class KvStorage {
 public:
  // Throws InputError when the CPU kernels do not serve the dtype with this model, or when it all exceeds the memory
  // that is available.
  KvStorage(const ModelShape& model, const KvCacheOptions& options);

  // What the layer reads: where it has no K and V of its own, those of its source.
  [[nodiscard]] kernels::KvCacheView layer(int index) const;
  [[nodiscard]] const KvCacheOptions& options() const { return options_; }

  // In order, in all layers.
  void copy_blocks(std::span<const BlockCopy> copies);

  // In order, in all layers: see Executor::move_slots. Throws std::invalid_argument with kivi4 and kivi2, whose tokens
  // are quantized together.
  void move_slots(std::span<const SlotMove> moves);

  // See Executor::swap_blocks. Precondition: ids are below num_blocks and num_host_blocks; the dtype is not kivi4,
  // kivi2.
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in);

  // See Executor::read_blocks. Preconditions: the dtype is not kivi4, kivi2; as many bytes as the blocks have.
  [[nodiscard]] std::size_t bytes_per_block() const;  // in all layers
  void read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) const;
  void write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from);

  // Values in [-1, 1) everywhere: for measuring without a prefill. Untouched memory would not do, the system backs it
  // with a single page of zeros that never leaves the cache.
  void fill_randomly(std::uint64_t seed);

 private:
  // Bytes that a layer with a cache of its own has, one part after the other.
  struct Part {
    std::size_t block_bytes = 0;  // 0: not part of the blocks
    std::size_t offset = 0;       // in the layer
    std::size_t size = 0;
  };
  // A layer with a cache of its own.
  struct Layout {
    int num_kv_heads = 0;
    std::size_t offset = 0;     // in the memory
    std::vector<Part> parts{};  // K, V, and the two more that int8, kivi4 and kivi2 have; half of them with latents
  };
  [[nodiscard]] Layout layout_of(const ModelShape& model, const LayerKind& kind, std::size_t offset) const;
  [[nodiscard]] const Layout& layout(int owner) const { return layouts_[static_cast<std::size_t>(owner)]; }
  [[nodiscard]] std::size_t num_tensors() const { return is_latent_ ? 1 : 2; }  // K and V, or latents
  [[nodiscard]] std::byte* at(int owner, std::size_t part) const;
  [[nodiscard]] kernels::KvCacheView view_of(int owner) const;
  void move_slot(int owner, std::size_t part, const SlotMove& move);
  // Calls move(here, bytes) for each part of a block, layer after layer.
  template <class Move>
  void for_each_piece(BlockId block, Move&& move) const;
  void fill_part(int owner, std::size_t part, Dtype dtype, std::uint64_t seed);
  void fill_kivi_records(int owner);

  KvCacheOptions options_;
  std::vector<int> owners_;  // [num_layers]: which of the layers with a cache of their own each reads
  int num_owners_ = 0;
  int head_dim_ = 0, value_dim_ = 0;
  bool is_latent_ = false;
  std::vector<Layout> layouts_;  // [num_owners]
  AnonymousMemory memory_;       // [num_owners][parts]
  AnonymousMemory host_memory_;  // [num_host_blocks][num_owners][block of each part]
};

}  // namespace dculab::engine
