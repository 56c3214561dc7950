// KVQuant's cache format: 4, 3 or 2 bits a value at levels that are not evenly spaced; keys per channel and before they
// are rotated, values per token; the values farthest out are kept in F16 besides. Source: Hooper et al.,
// arXiv:2401.18079.
//
// A code stands for centre + half_range * level[code]. Levels, and the bounds between their codes, ascend: those of all
// K of a layer, and of all V, come from calibration, and so do centre and half_range of each channel of K. Those of V
// are the token's own.
//
//   x = (value - centre) * (half_range > 0 ? 1 / half_range : 0), in F32
//   code = how many of the bounds are below x
//
// Outliers are kvquant_outliers(width) values of a token's K, over all KV heads, with the largest |x|, and as many of
// its V with the largest |value|; of equal ones the lower channel comes first. centre = (largest + smallest) / 2 and
// half_range = (largest - smallest) / 2 of V's other values, both rounded to F16.
//
// Keys are cached as they are before rotary embedding, and rotated where they are read, by their place in the sequence.
//
// The codes of a head are bits, value after value from the lowest bit of the first byte on: [num_blocks, num_kv_heads,
// block_size, head_dim * bits / 8] of K, and the same of V.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kv/kvquant.hpp"
#include "kernels/ops.hpp"

namespace dculab::kernels {

using dculab::is_kvquant;

inline constexpr int kMostKvQuantWidth = 16384;  // K of a token in a layer, on the CPU

struct KvQuantOutlier {
  std::uint16_t channel;  // over all KV heads
  std::uint16_t value;    // F16
};
static_assert(sizeof(KvQuantOutlier) == kKvQuantOutlierBytes);

// Of a token's V, F16.
struct KvQuantScale {
  std::uint16_t centre, half_range;
};
static_assert(sizeof(KvQuantScale) == kKvQuantScaleBytes);

struct KvQuantExtras {
  // Levels of K [2^bits], levels of V [2^bits], bounds of K [2^bits - 1], bounds of V [2^bits - 1], and of each channel
  // of K the centre [width] and half of the range [width].
  const float* calibration = nullptr;
  KvQuantOutlier* k_outliers = nullptr;  // [num_blocks, block_size, outliers], channels ascending
  KvQuantOutlier* v_outliers = nullptr;  // the same
  KvQuantScale* v_scales = nullptr;      // [num_blocks, block_size]
  const float* cos_sin = nullptr;        // as of RopeAndCacheArgs; where keys are read
  int width = 0;                         // of all KV heads of the layer
  int first_channel = 0;                 // of the view's first head
  std::int16_t rotary_dim = 0;           // as of RopeAndCacheArgs
  bool neighbours = false;
};

// The parts of a cache.
struct KvQuantLayout {
  KvQuantExtras extras;
  int code_bits, head_dim, block_size, heads_in_block, outliers;

  explicit KvQuantLayout(const KvCacheView& cache)
      : extras(cache.extras.as<KvQuantExtras>()),
        code_bits(bits(cache.dtype)),
        head_dim(cache.head_dim),
        block_size(cache.block_size),
        heads_in_block(cache.heads_in_block()),
        outliers(kvquant_outliers(extras.width)) {}

  [[nodiscard]] int levels() const { return 1 << code_bits; }
  [[nodiscard]] const float* k_levels() const { return extras.calibration; }
  [[nodiscard]] const float* v_levels() const { return extras.calibration + levels(); }
  [[nodiscard]] const float* k_bounds() const { return v_levels() + levels(); }
  [[nodiscard]] const float* v_bounds() const { return k_bounds() + levels() - 1; }
  [[nodiscard]] const float* centres() const { return v_bounds() + levels() - 1; }
  [[nodiscard]] const float* half_ranges() const { return centres() + extras.width; }

  // Of a head's row.
  [[nodiscard]] int row_bytes() const { return head_dim * code_bits / 8; }
  [[nodiscard]] std::uint8_t* codes(void* pool, std::int64_t slot, int head) const {
    const std::int64_t row = (slot / block_size * heads_in_block + head) * block_size + slot % block_size;
    return static_cast<std::uint8_t*>(pool) + row * row_bytes();
  }
  [[nodiscard]] int turned_values() const { return extras.rotary_dim == 0 ? head_dim : extras.rotary_dim; }
};

}  // namespace dculab::kernels
