// Writes a KIVI cache: groups of 32 tokens that are complete, and the newest tokens beside them.
#pragma once

#include "kernels/gpu/kv/kivi_units.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// 32 values that share a scale and a zero.
template <int kBits>
__device__ __forceinline__ void store_unit(const KiviRecord<kBits>& record, int unit,
                                           const Numbers<kKiviGroup>& values) {
  constexpr float kLargestCode = (1 << kBits) - 1;
  float least = values[0], most = values[0];
  DCULAB_UNROLL
  for (int i = 1; i < kKiviGroup; ++i) {
    if (values[i] < least) least = values[i];  // of two zeros the first
    if (values[i] > most) most = values[i];
  }
  const Half stored = from_float<Half>((most - least) / kLargestCode);
  const float scale = to_float(stored);
  std::uint32_t words[kBits]{};
  DCULAB_UNROLL
  for (int i = 0; i < kKiviGroup; ++i) {
    float code = 0;
    if (scale != 0) code = round_to_even((values[i] - least) / scale);
    if (!(code < kLargestCode)) code = kLargestCode;  // also where it is not a number
    constexpr int kBytes = 4 * kBits;
    words[i % kBytes / 4] |= static_cast<std::uint32_t>(code) << (i % 4 * 8 + i / kBytes * kBits);
  }
  DCULAB_UNROLL
  for (int w = 0; w < kBits; ++w) store(record.codes(unit) + w, words[w]);
  store(record.scale(unit), stored);
  store(record.zero(unit), from_float<Half>(least));
}

// What lanes have of the keys of a group: each its own channel.
struct KiviKeys {
  Half tokens[kKiviGroup][kKiviThreads];
};

// Channel `d` of a group's keys. Addresses of 32 tokens would fill the registers, so keys pass through shared memory.
template <int kBits>
__device__ __forceinline__ void quantize_keys(const KvCacheView& cache, const ExactTokens& tokens,
                                              const std::int32_t* table, int kv_head, int first, int d,
                                              KiviKeys& keys) {
  DCULAB_ROLLED
  for (int i = 0; i < kKiviGroup; i += kWide) {
    DCULAB_UNROLL
    for (int j = 0; j < kWide; ++j)
      keys.tokens[i + j][thread_index()] = from_float<Half>(tokens.load_values<1>(KiviTensor::k, first + i + j, d)[0]);
  }
  Numbers<kKiviGroup> values;
  DCULAB_UNROLL
  for (int i = 0; i < kKiviGroup; ++i) values[i] = to_float(keys.tokens[i][thread_index()]);
  const KiviParts parts(cache, first);
  const std::int32_t block = load(table + first / cache.block_size + parts.part(d));
  store_unit(KiviRecord<kBits>(cache.k, cache, block, kv_head), parts.unit(d), values);
}

// 32 channels of a token's values, from channel `d` on.
template <int kBits>
__device__ __forceinline__ void quantize_values(const KvCacheView& cache, const ExactTokens& tokens,
                                                const std::int32_t* table, int kv_head, int token, int d) {
  Numbers<kKiviGroup> values;
  DCULAB_UNROLL
  for (int i = 0; i < kKiviGroup; i += kWide) {
    const auto wide = tokens.load_values<kWide>(KiviTensor::v, token, d + i);
    DCULAB_UNROLL
    for (int j = 0; j < kWide; ++j) values[i + j] = wide[j];
  }
  const std::int32_t block = load(table + token / cache.block_size);
  const int unit = (token % cache.block_size * cache.head_dim + d) / kKiviGroup;
  store_unit(KiviRecord<kBits>(cache.v, cache, block, kv_head), unit, values);
}

// Grid: groups that a sequence completes, KV heads, sequences. A lane has a unit of K or of V at a time.
template <int kWave, int kBits>
__global__ void __launch_bounds__(kKiviThreads) quantize_groups_kernel(KiviTokens args) {
  DCULAB_SHARED(KiviKeys, keys);
  const KvCacheView& cache = args.cache;
  const KiviPlace place(workgroup_z(), args.query_start_loc, args.context_lens);
  const int kv_head = workgroup_y(), head_dim = cache.head_dim;
  const int first = (place.computed / kKiviGroup + workgroup_x()) * kKiviGroup;
  if (first + kKiviGroup > place.context) return;
  const ExactTokens tokens(cache, place, kv_head);
  const std::int32_t* const table = args.block_tables + std::int64_t{place.seq} * args.max_blocks_per_seq;
  for (int unit = thread_index(); unit < 2 * head_dim; unit += threads_per_workgroup()) {
    if (unit < head_dim) {
      quantize_keys<kBits>(cache, tokens, table, kv_head, first, unit, keys);
    } else {
      const int units_per_token = head_dim / kKiviGroup, of_values = unit - head_dim;
      quantize_values<kBits>(cache, tokens, table, kv_head, first + of_values / units_per_token,
                             of_values % units_per_token * kKiviGroup);
    }
  }
}

// Grid: new tokens that a sequence keeps, the newest first; sequences.
template <int kWave>
__global__ void __launch_bounds__(kKiviThreads) keep_residual_kernel(KiviTokens args) {
  const KvCacheView& cache = args.cache;
  const KiviPlace place(workgroup_y(), args.query_start_loc, args.context_lens);
  const int token = place.context - 1 - workgroup_x();
  if (token < place.computed) return;
  const auto kivi = cache.extras.as<KiviOnDevice>();
  const std::int64_t first_row = std::int64_t{load(kivi.residual_rows + place.seq)} * cache.num_kv_heads;
  const int width = cache.num_kv_heads * cache.head_dim, in_ring = token % kivi.residual.tokens;
  const std::int64_t from = (std::int64_t{place.first_new_token} + token - place.computed) * kivi.stride;
  for (int i = thread_index() * kWide; i < 2 * width; i += threads_per_workgroup() * kWide) {
    const bool is_k = i < width;
    const int value = is_k ? i : i - width;
    const std::int64_t row = (first_row + value / cache.head_dim) * kivi.residual.tokens + in_ring;
    store_packed<kWide, Half>(is_k ? kivi.residual.k : kivi.residual.v, row * cache.head_dim + value % cache.head_dim,
                              load_numbers<kWide>(is_k ? kivi.new_k : kivi.new_v, kivi.new_dtype, from + value));
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
