// Where K and V of all cached tokens lie: one pool of KV blocks per layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/executor.hpp"
#include "core/model_shape.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "kernels/ops.hpp"

namespace dculab::engine {

struct KvCacheOptions {
  int num_blocks = 0;
  int block_size = 16;       // tokens
  Dtype dtype = Dtype::f16;  // f32, f16 or bf16
};

// Bytes of K and V of one block in all layers.
[[nodiscard]] Bytes kv_block_bytes(const ModelShape& model, int block_size, Dtype dtype);

// Each layer holds K, then V, each [num_blocks, num_key_value_heads, block_size, head_dim]. Fresh blocks are zero.
class KvStorage {
 public:
  // Throws InputError when the dtype is not one of the three, or when the pool exceeds the memory that is available.
  KvStorage(const ModelShape& model, const KvCacheOptions& options);

  [[nodiscard]] kernels::KvCacheView layer(int index) const;
  [[nodiscard]] const KvCacheOptions& options() const { return options_; }

  // In order, in all layers.
  void copy_blocks(std::span<const BlockCopy> copies);

  // Values in [-1, 1) everywhere: for measuring without a prefill. Untouched memory would not do, the system backs it
  // with a single page of zeros that never leaves the cache.
  void fill_randomly(std::uint64_t seed);

 private:
  KvCacheOptions options_;
  int num_layers_ = 0;
  int num_kv_heads_ = 0;
  int head_dim_ = 0;
  std::size_t block_bytes_ = 0;  // K (or V) of one block in one layer
  std::size_t pool_bytes_ = 0;   // K (or V) of one layer
  AnonymousMemory memory_;       // [num_layers][2][num_blocks][block_bytes]
};

}  // namespace dculab::engine
