// A tile of K and V as floats, and rows of any format written into it.
#if defined(DCULAB_KERNELS_CPU_KV_TILE_FLOATS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_TILE_FLOATS_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_TILE_FLOATS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_TILE_FLOATS_INL_HPP_
#endif

#include <algorithm>

#include "kernels/cpu/kv/rows-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// As many tokens of K as a vector has lanes, transposed: keys[d * kTileTokens + i] = rows[i][d].
template <typename T>
HWY_INLINE void transpose_tokens(const KvRow<T>* rows, int head_dim, float* keys) {
  for (int d = 0; d < head_dim; d += kLanes) {
    Vector block[kLanes];
    unrolled<kLanes>([&](auto i) DCULAB_INLINE { block[i] = rows[i].load(d, head_dim); });
    transpose(block);
    unrolled<kLanes>([&](auto i) DCULAB_INLINE { store(block[i], keys + (d + i) * kTileTokens); });
  }
}

// K and V of up to kTileTokens tokens as F32.
struct TileFloats {
  int head_dim, value_dim, width;  // width: of value_dim, whole vectors
  float* keys;                     // [head_dim, kTileTokens]
  float* values;                   // [kTileTokens, width]

  // rows[i] becomes column first + i of keys. `first` is a multiple of the lanes; `rows` has room to be padded to one.
  template <typename T>
  void transpose_rows(KvRow<T>* rows, int first, int count) const {
    if (count == 0) return;
    std::fill(rows + count, rows + round_up_to_lanes(count), rows[count - 1]);
    for (int i = 0; i < count; i += kLanes) transpose_tokens(rows + i, head_dim, keys + first + i);
  }

  template <typename T>
  HWY_INLINE void widen(const KvRow<T>& row, float* to) const {
    for (int d = 0; d < value_dim; d += kLanes) store(row.load(d, value_dim), to + d);
  }
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
