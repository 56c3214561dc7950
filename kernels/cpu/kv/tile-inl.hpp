// A tile of K and V out of the paged cache as floats, whatever it is stored in.
#if defined(DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_
#endif

#include "kernels/cpu/kv/formats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

class KvTile {
 public:
  static std::size_t floats(int head_dim, int value_dim) {
    return static_cast<std::size_t>(kTileTokens * (round_up_to_lanes(head_dim) + round_up_to_lanes(value_dim)));
  }
  KvTile(float* memory, int head_dim, int value_dim)
      : tile_{.head_dim = head_dim,
              .value_dim = value_dim,
              .width = round_up_to_lanes(value_dim),
              .keys = memory,
              .values = memory + kTileTokens * round_up_to_lanes(head_dim)} {}

  [[nodiscard]] const float* keys() const { return tile_.keys; }      // [head_dim, kTileTokens]
  [[nodiscard]] const float* values() const { return tile_.values; }  // [kTileTokens, width]
  [[nodiscard]] int width() const { return tile_.width; }             // of value_dim, whole vectors

  // Reads the tokens of `where` and meanwhile asks for `lines` lines of the next tile.
  // Columns of keys() and rows of values() beyond those tokens are unspecified.
  void fill(const KvSource& source, const KvRuns& where, LinesAhead& ahead, int lines) const {
    const int lines_per_token = (lines + kTileTokens - 1) / kTileTokens;
    with_cached_type(source.cache.dtype, [&]<typename T>(const T*) {
      if constexpr (kLiesInRows<T>)
        fill_rows<T>(source.cache, where, ahead, lines_per_token);
      else
        T::fill(source, where, tile_, ahead, lines_per_token);
    });
  }

 private:
  template <typename T>
  HWY_NOINLINE void fill_rows(const KvCacheView& cache, const KvRuns& where, LinesAhead& ahead,
                              int lines_per_token) const {
    KvRow<T> k_rows[kTileTokens];
    int count = 0;
    for_each_row<T>(cache, where, [&](const KvRow<T>& k, const KvRow<T>& v) {
      k_rows[count] = k;
      tile_.widen(v, tile_.values + count++ * tile_.width);
      ahead.ask(lines_per_token);
    });
    tile_.transpose_rows(k_rows, 0, count);
  }

  TileFloats tile_;
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
