// The kernels that move K and V into, within and out of the paged cache.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/kv/table.hpp"
#include "kernels/kv/kivi.hpp"
#include "kernels/number_format.hpp"
#include "kernels/reference/cached_value.hpp"
#include "kernels/reference/kv/kvquant.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::reference {
namespace {

// Turns the pairs (i, i + half) of one head, or those of neighbours, by the angles of one position.
void rotate(float* head, const float* cos_sin, int half, bool neighbours) {
  for (int i = 0; i < half; ++i) {
    const double cosine = cos_sin[i], sine = cos_sin[half + i];
    float& first = head[neighbours ? 2 * i : i];
    float& second = head[neighbours ? 2 * i + 1 : half + i];
    const double a = first, b = second;
    first = static_cast<float>(a * cosine - b * sine);
    second = static_cast<float>(b * cosine + a * sine);
  }
}
// k and v: [head_dim] of one head of one token.
void store_head(const KvCacheView& cache, std::int64_t slot, int head, const float* k, const float* v) {
  store_cached(cache, KvTensor::k, slot, head, k);
  store_cached(cache, KvTensor::v, slot, head, v);
}

}  // namespace

void rope_and_cache(const RopeAndCacheArgs& args) {
  const KvCacheView& cache = args.cache;
  const int width = (args.num_heads + 2 * cache.num_kv_heads) * cache.head_dim;
  for (int token = 0; token < args.num_tokens; ++token) {
    float* q = args.qkv + std::ptrdiff_t{token} * width;
    float* k = q + args.num_heads * cache.head_dim;
    const float* v = k + cache.num_kv_heads * cache.head_dim;
    if (is_kvquant(cache.dtype) && args.slot_mapping[token] >= 0)
      store_kvquant(cache, args.slot_mapping[token], k, v);
    for (int head = 0; args.cos_sin != nullptr && head < args.num_heads + cache.num_kv_heads; ++head) {
      const int turned = args.turned_values();
      const float* cos_sin = args.cos_sin + std::ptrdiff_t{args.positions[token]} * turned;
      rotate(q + head * cache.head_dim, cos_sin, turned / 2, args.neighbours);
    }
    if (is_kivi(cache.dtype)) {
      std::for_each(k, q + width, [](float& value) { value = f32_from_f16(f16_from_f32(value)); });
      continue;
    }
    if (!lies_in_rows(cache.dtype)) continue;
    for (int head = 0; head < cache.num_kv_heads; ++head) {
      const std::ptrdiff_t index = std::ptrdiff_t{token} * cache.num_kv_heads + head;
      const std::int64_t slot = args.head_slots != nullptr ? args.head_slots[index] : args.slot_mapping[token];
      const std::ptrdiff_t first = std::ptrdiff_t{head} * cache.head_dim;
      if (slot >= 0) store_head(cache, slot, head, k + first, v + first);
    }
  }
}

void reshape_and_cache(const ReshapeAndCacheArgs& args) {
  for (int token = 0; token < args.num_tokens; ++token) {
    const std::int64_t slot = args.slot_mapping[token], row = token * args.kv_stride;
    if (slot < 0) continue;
    for (int head = 0; head < args.cache.num_kv_heads; ++head) {
      const std::int64_t first = row + head * args.cache.head_dim;
      store_head(args.cache, slot, head, args.k + first, args.v + first);
    }
  }
}

void copy_blocks(const CopyBlocksArgs& args) {
  const KvCacheView& cache = args.cache;
  const std::ptrdiff_t values = std::ptrdiff_t{cache.num_kv_heads} * cache.block_size * cache.head_dim;
  const std::ptrdiff_t block_bytes =
      is_kivi(cache.dtype) ? cache.num_kv_heads * KiviLayout(cache).record_bytes() : values * bits(cache.dtype) / 8;
  const std::ptrdiff_t scale_bytes = std::ptrdiff_t{cache.num_kv_heads} * cache.block_size * 4;  // int8
  for (int pair = 0; pair < args.num_pairs; ++pair) {
    const std::int32_t source = args.pairs[2 * pair], destination = args.pairs[2 * pair + 1];
    const auto copy = [source, destination](void* data, std::ptrdiff_t bytes) {
      auto* blocks = static_cast<std::byte*>(data);
      if (blocks != nullptr)
        std::memmove(blocks + destination * bytes, blocks + source * bytes, static_cast<std::size_t>(bytes));
    };
    for (void* data : {cache.k, cache.v}) copy(data, block_bytes);
    if (is_kvquant(cache.dtype)) {
      const KvQuantLayout layout(cache);
      copy(layout.extras.v_scales, cache.block_size * kKvQuantScaleBytes);
      for (KvQuantOutlier* outliers : {layout.extras.k_outliers, layout.extras.v_outliers})
        copy(outliers, std::ptrdiff_t{cache.block_size} * layout.outliers * kKvQuantOutlierBytes);
    }
    if (cache.dtype != Dtype::int8) continue;
    const auto scales = cache.extras.as<Int8KvScales>();
    for (float* of_tensor : {scales.k, scales.v}) copy(of_tensor, scale_bytes);
  }
}

}  // namespace dculab::kernels::reference
