#include "engine/kv/kv_storage.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/kv/random_values.hpp"

namespace dculab::engine {

Bytes kv_block_bytes(const ModelShape& model, int block_size, Dtype dtype) {
  return kv_bytes_per_token(model, dtype) * block_size;
}

KvStorage::KvStorage(const ModelShape& model, const KvCacheOptions& options)
    : options_(options),
      num_layers_(model.num_hidden_layers),
      num_kv_heads_(model.num_key_value_heads),
      head_dim_(model.head_dim) {
  if (options.dtype != Dtype::f32 && options.dtype != Dtype::f16 && options.dtype != Dtype::bf16)
    throw InputError("kv_cache_dtype " + std::string(name(options.dtype)) +
                     " is not supported on the CPU; use f32, f16 or bf16");
  if (options.num_blocks < 1) throw InputError("the KV cache needs at least one block");
  const Bytes total = kv_block_bytes(model, options.block_size, options.dtype) * options.num_blocks;
  const std::string what = "a KV cache of " + std::to_string(options.num_blocks) + " blocks of " +
                           std::to_string(options.block_size) + " tokens";
  require_memory(what.c_str(), total, "ask for fewer tokens, fewer sequences or a smaller kv_cache_dtype");
  block_bytes_ =
      static_cast<std::size_t>(total.value() / options.num_blocks) / 2 / static_cast<std::size_t>(num_layers_);
  pool_bytes_ = block_bytes_ * static_cast<std::size_t>(options.num_blocks);
  memory_ = AnonymousMemory(2 * pool_bytes_ * static_cast<std::size_t>(num_layers_));
}

kernels::KvCacheView KvStorage::layer(int index) const {
  std::byte* const start = memory_.data() + 2 * pool_bytes_ * static_cast<std::size_t>(index);
  return {.k = start,
          .v = start + pool_bytes_,
          .dtype = options_.dtype,
          .num_blocks = options_.num_blocks,
          .num_kv_heads = num_kv_heads_,
          .block_size = options_.block_size,
          .head_dim = head_dim_};
}

void KvStorage::copy_blocks(std::span<const BlockCopy> copies) {
  const auto num_pools = 2 * static_cast<std::size_t>(num_layers_);
  for (const BlockCopy& copy : copies)
    for (std::size_t pool = 0; pool < num_pools; ++pool) {
      std::byte* const start = memory_.data() + pool * pool_bytes_;
      std::memcpy(start + static_cast<std::size_t>(copy.destination) * block_bytes_,
                  start + static_cast<std::size_t>(copy.source) * block_bytes_, block_bytes_);
    }
}

void KvStorage::fill_randomly(std::uint64_t seed) {
  const std::vector<std::byte> pattern = random_kv_values(options_.dtype, seed);
  for (std::size_t offset = 0; offset < memory_.size_bytes(); offset += pattern.size())
    std::memcpy(memory_.data() + offset, pattern.data(), std::min(pattern.size(), memory_.size_bytes() - offset));
}

}  // namespace dculab::engine
