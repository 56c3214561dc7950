// Where a KIVI cache's units lie (kernels/kv/kivi.hpp), and the tokens that are in none yet.
#pragma once

#include <type_traits>

#include "kernels/gpu/kv/kivi.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "lower/dculab_gpu/kivi_tiling.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// A unit's codes are kBits words. Byte i of a word holds a code in each plane of kBits bits: of value
// 4 * word + i + 4 * kBits * plane.
template <int kBits>
inline constexpr int kKiviPlanes = 8 / kBits;
template <int kBits>
inline constexpr int kKiviCodes = 32 / kBits;  // of a word

template <int kBits>
__device__ __forceinline__ constexpr int kivi_value(int word, int plane, int i) {
  return 4 * word + i + 4 * kBits * plane;
}

template <int kBits>
__device__ __forceinline__ float kivi_code(std::uint32_t word, int plane, int i) {
  constexpr std::uint32_t kMask = kBits == 4 ? 0x0F0F0F0FU : 0x03030303U;
  return static_cast<float>((word >> (plane * kBits) & kMask) >> (8 * i) & 0xFFU);
}

// The units of a block and KV head: codes, then scales, then zeros.
template <int kBits>
struct KiviRecord {
  std::byte* start;
  int units;

  __device__ __forceinline__ KiviRecord(void* pool, const KvCacheView& cache, std::int32_t block, int kv_head)
      : units(cache.block_size * cache.head_dim / kKiviGroup) {
    const std::int64_t record = std::int64_t{block} * cache.num_kv_heads + kv_head;
    start = static_cast<std::byte*>(pool) + record * (units * (4 * kBits + 4));
  }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t* codes(int unit) const {
    return reinterpret_cast<std::uint32_t*>(start) + unit * kBits;
  }
  [[nodiscard]] __device__ __forceinline__ Half* scale(int unit) const {
    return reinterpret_cast<Half*>(start + units * 4 * kBits) + unit;
  }
  [[nodiscard]] __device__ __forceinline__ Half* zero(int unit) const { return scale(unit + units); }
};

// How the channels of a group's keys are divided among blocks of fewer than 32 tokens.
struct KiviParts {
  int units;    // of a part
  int factor;   // d * factor >> 16 is the part of channel d: exact below 256
  int first;    // unit of the group's first channel in its block, where the block has several groups
  int entries;  // of the block table that a group has

  __device__ __forceinline__ KiviParts(const KvCacheView& cache, int first_token)
      : units(cache.block_size * cache.head_dim / kKiviGroup),
        factor(cache.block_size < kKiviGroup ? (65536 + units - 1) / units : 0),
        first(cache.block_size < kKiviGroup ? 0 : first_token % cache.block_size / kKiviGroup * cache.head_dim),
        entries(cache.block_size < kKiviGroup ? kKiviGroup / cache.block_size : 1) {}
  [[nodiscard]] __device__ __forceinline__ int part(int d) const { return d * factor >> 16; }
  [[nodiscard]] __device__ __forceinline__ int unit(int d) const { return first + d - part(d) * units; }
};

// A sequence of the call, and where it is.
struct KiviPlace {
  int seq, computed, context;
  int first_new_token;  // of the call

  // query_start_loc null: one new token a sequence.
  __device__ __forceinline__ KiviPlace(int index, const std::int32_t* query_start_loc, const std::int32_t* context_lens)
      : seq(index), context(load(context_lens + index)) {
    first_new_token = query_start_loc == nullptr ? index : load(query_start_loc + index);
    const int count = query_start_loc == nullptr ? 1 : load(query_start_loc + index + 1) - first_new_token;
    computed = context - count;
  }
};

enum class KiviTensor : std::uint8_t { k, v };

// Tokens of a sequence and KV head as they were computed: those before the new ones lie in the residual.
class ExactTokens {
 public:
  __device__ __forceinline__ ExactTokens(const KvCacheView& cache, const KiviPlace& place, int kv_head)
      : kivi_(cache.extras.as<KiviOnDevice>()), head_dim_(cache.head_dim), computed_(place.computed) {
    const std::int64_t row = std::int64_t{load(kivi_.residual_rows + place.seq)} * cache.num_kv_heads + kv_head;
    first_residual_ = row * kivi_.residual.tokens * head_dim_;
    first_new_ = std::int64_t{place.first_new_token} * kivi_.stride + kv_head * head_dim_;
  }

  // Values [d, d + kCount) of a token, which exists.
  template <int kCount>
  [[nodiscard]] __device__ __forceinline__ Numbers<kCount> load_values(KiviTensor tensor, int token, int d) const {
    if (token < computed_) return load_packed<kCount, Half>(residual(tensor), in_residual(token) + d);
    if (kivi_.new_dtype == Dtype::f16) return load_packed<kCount, Half>(new_rows(tensor), among_new(token) + d);
    auto numbers = load_packed<kCount, float>(new_rows(tensor), among_new(token) + d);
    DCULAB_UNROLL
    for (int i = 0; i < kCount; ++i) numbers[i] = to_float(from_float<Half>(numbers[i]));
    return numbers;
  }

  // Values [d, d + 8) as halves. New: halves where Word is a pair of them, else floats.
  template <typename Word>
  [[nodiscard]] __device__ __forceinline__ Pack<std::uint32_t, 4> load_halves(KiviTensor tensor, int token,
                                                                              int d) const {
    using Halves = Pack<std::uint32_t, 4>;
    const bool is_new = token >= computed_;
    if (std::is_same_v<Word, HalfPair> || !is_new) {
      const auto* const halves = static_cast<const Half*>(is_new ? new_rows(tensor) : residual(tensor));
      return load(reinterpret_cast<const Halves*>(halves + (is_new ? among_new(token) : in_residual(token)) + d));
    }
    const auto numbers = load_packed<kWide, float>(new_rows(tensor), among_new(token) + d);
    Halves halves;
    DCULAB_UNROLL
    for (int i = 0; i < 4; ++i)
      halves[i] = pair_of(from_float<Half>(numbers[2 * i]), from_float<Half>(numbers[2 * i + 1])).bits;
    return halves;
  }

 private:
  [[nodiscard]] __device__ __forceinline__ const void* residual(KiviTensor tensor) const {
    return tensor == KiviTensor::k ? kivi_.residual.k : kivi_.residual.v;
  }
  [[nodiscard]] __device__ __forceinline__ const void* new_rows(KiviTensor tensor) const {
    return tensor == KiviTensor::k ? kivi_.new_k : kivi_.new_v;
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t in_residual(int token) const {
    return first_residual_ + std::int64_t{token % kivi_.residual.tokens} * head_dim_;
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t among_new(int token) const {
    return first_new_ + std::int64_t{token - computed_} * kivi_.stride;
  }

  KiviOnDevice kivi_;
  int head_dim_, computed_;
  std::int64_t first_residual_, first_new_;  // values
};

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
