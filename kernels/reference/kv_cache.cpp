// The kernels that move K and V into, within and out of the paged cache.
#include <cstddef>
#include <cstring>

#include "kernels/reference/cached_value.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

// Turns the pairs (i, i + head_dim / 2) of one head by the angles of one position.
void rotate(float* head, const float* cos_sin, int head_dim) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const double cosine = cos_sin[i], sine = cos_sin[half + i];
    const double a = head[i], b = head[half + i];
    head[i] = static_cast<float>(a * cosine - b * sine);
    head[half + i] = static_cast<float>(b * cosine + a * sine);
  }
}

// k and v: [num_kv_heads * head_dim] of one token.
void store_token(const KvCacheView& cache, std::int64_t slot, const float* k, const float* v) {
  for (int i = 0; i < cache.num_kv_heads * cache.head_dim; ++i) {
    const std::size_t index = cache_index(cache, slot, i / cache.head_dim, i % cache.head_dim);
    store_cached(cache, KvTensor::k, index, k[i]);
    store_cached(cache, KvTensor::v, index, v[i]);
  }
}

bool is_skipped(const ReshapeAndCacheArgs& args, std::int64_t slot) {
  if (slot < 0) return true;
  return args.skip_set != nullptr && (args.skip_set[slot / 32] >> (slot % 32) & 1U) != 0;
}

}  // namespace

void rope_and_cache(const RopeAndCacheArgs& args) {
  const KvCacheView& cache = args.cache;
  const int width = (args.num_heads + 2 * cache.num_kv_heads) * cache.head_dim;
  for (int token = 0; token < args.num_tokens; ++token) {
    const float* cos_sin = args.cos_sin + std::ptrdiff_t{args.positions[token]} * cache.head_dim;
    float* q = args.qkv + std::ptrdiff_t{token} * width;
    float* k = q + args.num_heads * cache.head_dim;
    const float* v = k + cache.num_kv_heads * cache.head_dim;
    for (int head = 0; head < args.num_heads + cache.num_kv_heads; ++head) {
      rotate(q + head * cache.head_dim, cos_sin, cache.head_dim);
    }
    if (args.slot_mapping[token] >= 0) store_token(cache, args.slot_mapping[token], k, v);
  }
}

void reshape_and_cache(const ReshapeAndCacheArgs& args) {
  for (int token = 0; token < args.num_tokens; ++token) {
    const std::int64_t slot = args.slot_mapping[token], row = token * args.kv_stride;
    if (!is_skipped(args, slot)) store_token(args.cache, slot, args.k + row, args.v + row);
  }
}

void gather_cached_kv(const GatherCachedKvArgs& args) {
  const KvCacheView& cache = args.cache;
  std::size_t out = 0;
  for (int seq = 0; seq < args.num_seqs; ++seq) {
    const std::int32_t* block_table = args.block_tables + std::ptrdiff_t{seq} * args.max_blocks_per_seq;
    const int tokens = args.context_start_loc[seq + 1] - args.context_start_loc[seq];
    for (int token = 0; token < tokens; ++token) {
      const std::int64_t slot = slot_of(cache, block_table, token);
      for (int i = 0; i < cache.num_kv_heads * cache.head_dim; ++i, ++out) {
        const std::size_t index = cache_index(cache, slot, i / cache.head_dim, i % cache.head_dim);
        args.k[out] = static_cast<float>(load_cached(cache, KvTensor::k, index));
        args.v[out] = static_cast<float>(load_cached(cache, KvTensor::v, index));
      }
    }
  }
}

void copy_blocks(const CopyBlocksArgs& args) {
  const KvCacheView& cache = args.cache;
  const std::ptrdiff_t values = std::ptrdiff_t{cache.num_kv_heads} * cache.block_size * cache.head_dim;
  const std::ptrdiff_t block_bytes = values * bits(cache.dtype) / 8;
  for (int pair = 0; pair < args.num_pairs; ++pair) {
    const std::int32_t source = args.pairs[2 * pair], destination = args.pairs[2 * pair + 1];
    for (void* data : {cache.k, cache.v}) {
      auto* blocks = static_cast<std::byte*>(data);
      std::memmove(blocks + destination * block_bytes, blocks + source * block_bytes,
                   static_cast<std::size_t>(block_bytes));
    }
  }
}

}  // namespace dculab::kernels::reference
