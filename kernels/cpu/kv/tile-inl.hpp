// A tile of K and V out of the paged cache as floats, whatever it is stored in.
#if defined(DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_TILE_INL_HPP_
#endif

#include <algorithm>

#include "kernels/cpu/kv/runs-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// One token's K or V: a stored value stands for value * scale.
template <typename T>
struct KvRow {
  const T* values;
  float scale;

  // Zero beyond head_dim.
  [[nodiscard]] HWY_INLINE Vector load(int d, int head_dim) const {
    return d + kLanes <= head_dim ? load_whole(d) : scaled(load_first(values + d, head_dim - d));
  }
  [[nodiscard]] HWY_INLINE Vector load_whole(int d) const { return scaled(HWY_NAMESPACE::load(values + d)); }

 private:
  [[nodiscard]] HWY_INLINE Vector scaled(Vector stored) const {
    if constexpr (kIsScaled<T>) return hn::Mul(stored, hn::Set(F32(), scale));
    return stored;
  }
};

// Calls body(K, V) with the rows of each token of `where`, of any format but kivi.
template <typename T, typename Body>
HWY_INLINE void for_each_row(const KvCacheView& cache, const KvRuns& where, Body&& body) {
  constexpr float kFactor = std::is_same_v<T, Fp8E4m3> ? kE4m3Factor : 1.0F;
  for (int i = 0; i < where.num_runs; ++i) {
    const KvRuns::Run& run = where.runs[i];
    const std::ptrdiff_t first = first_token(cache, run);
    const T* k = static_cast<const T*>(cache.k) + first * cache.head_dim;
    const T* v = static_cast<const T*>(cache.v) + first * cache.value_stride();
    for (int token = 0; token < run.tokens; ++token, k += cache.head_dim, v += cache.value_stride()) {
      if constexpr (std::is_same_v<T, Int8>)
        body(KvRow<T>{k, cache.k_scales[first + token]}, KvRow<T>{v, cache.v_scales[first + token]});
      else
        body(KvRow<T>{k, cache.k_scale * kFactor}, KvRow<T>{v, cache.v_scale * kFactor});
    }
  }
}

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
class KvTile {
 public:
  static std::size_t floats(int head_dim, int value_dim) {
    return static_cast<std::size_t>(kTileTokens * (round_up_to_lanes(head_dim) + round_up_to_lanes(value_dim)));
  }
  KvTile(float* memory, int head_dim, int value_dim)
      : head_dim_(head_dim),
        value_dim_(value_dim),
        width_(round_up_to_lanes(value_dim)),
        keys_(memory),
        values_(memory + kTileTokens * round_up_to_lanes(head_dim)) {}

  [[nodiscard]] const float* keys() const { return keys_; }      // [head_dim, kTileTokens]
  [[nodiscard]] const float* values() const { return values_; }  // [kTileTokens, width]
  [[nodiscard]] int width() const { return width_; }             // of value_dim, whole vectors

  // Reads the tokens of `where` and meanwhile asks for `lines` lines of the next tile.
  // Columns of keys() and rows of values() beyond those tokens are unspecified.
  void fill(const KvSource& source, const KvRuns& where, LinesAhead& ahead, int lines) const {
    const int lines_per_token = (lines + kTileTokens - 1) / kTileTokens;
    with_cached_type(source.cache.dtype, [&]<typename T>(const T*) {
      if constexpr (kIsKivi<T>)
        fill_groups<T::kBits>(source, where, ahead, lines_per_token);
      else
        fill_rows<T>(source.cache, where, ahead, lines_per_token);
    });
  }

 private:
  template <int kBits>
  HWY_NOINLINE void fill_groups(const KvSource& source, const KvRuns& where, LinesAhead& ahead,
                                int lines_per_token) const {
    int count = 0;
    for (int i = 0; i < where.num_runs; ++i) {
      fill_units<kBits>(source.cache, where.runs[i], count, ahead, lines_per_token);
      count += where.runs[i].tokens;
    }
    fill_unpaged(source, where.unpaged_begin, where.unpaged_end, count);
  }

  template <typename T>
  HWY_NOINLINE void fill_rows(const KvCacheView& cache, const KvRuns& where, LinesAhead& ahead,
                              int lines_per_token) const {
    KvRow<T> k_rows[kTileTokens];
    int count = 0;
    for_each_row<T>(cache, where, [&](const KvRow<T>& k, const KvRow<T>& v) {
      k_rows[count] = k;
      widen(v, values_ + count++ * width_);
      ahead.ask(lines_per_token);
    });
    transpose_rows(k_rows, 0, count);
  }

  // rows[i] becomes column first + i of keys(). `first` is a multiple of the lanes; `rows` has room to be padded to
  // one.
  template <typename T>
  void transpose_rows(KvRow<T>* rows, int first, int count) const {
    if (count == 0) return;
    std::fill(rows + count, rows + round_up_to_lanes(count), rows[count - 1]);
    for (int i = 0; i < count; i += kLanes) transpose_tokens(rows + i, head_dim_, keys_ + first + i);
  }

  template <typename T>
  HWY_INLINE void widen(const KvRow<T>& row, float* to) const {
    for (int d = 0; d < value_dim_; d += kLanes) store(row.load(d, value_dim_), to + d);
  }

  // A run of a kivi cache; the tile's tokens begin `count` tokens before it.
  template <int kBits>
  void fill_units(const KvCacheView& cache, const KvRuns::Run& run, int count, LinesAhead& ahead,
                  int lines_per_token) const {
    const KiviLayout layout(cache);
    const int units = run.tokens * head_dim_ / kKiviGroup, first = run.offset * head_dim_ / kKiviGroup;
    const KiviUnit k = layout.unit(cache.k, run.row, first), v = layout.unit(cache.v, run.row, first);
    const int units_before = count * head_dim_ / kKiviGroup;
    const auto key = [&](int unit) {
      const int group = (units_before + unit) / head_dim_, d = (units_before + unit) % head_dim_;
      return keys_ + d * kTileTokens + group * kKiviGroup;
    };
    const int units_per_token = head_dim_ / kKiviGroup;
    const auto value = [&](int unit) {
      return values_ + (count + unit / units_per_token) * width_ + unit % units_per_token * kKiviGroup;
    };
    load_units<kBits>(k, units, key, ahead, 0);
    load_units<kBits>(v, units, value, ahead, lines_per_token * kLanes);
  }

  // Units in a row; unit i goes to to(i).
  template <int kBits, typename Place>
  static HWY_INLINE void load_units(const KiviUnit& first, int units, Place&& to, LinesAhead& ahead, int lines) {
    constexpr int kCodeBytes = kKiviGroup / 8 * kBits;
    for (int unit = 0; unit < units; unit += kLanes) {
      const int some = std::min(kLanes, units - unit);
      float scales[kLanes], zeros[kLanes];
      store(load_first(reinterpret_cast<const F16*>(first.scale) + unit, some), scales);
      store(load_first(reinterpret_cast<const F16*>(first.zero) + unit, some), zeros);
      for (int i = 0; i < some; ++i)
        load_unit<kBits>(first.codes + (unit + i) * kCodeBytes, scales[i], zeros[i], to(unit + i));
      ahead.ask(lines);
    }
  }

  // Tokens [begin, end) of the residual and the new ones, behind `count` others of the tile.
  void fill_unpaged(const KvSource& source, int begin, int end, int count) const {
    KvRow<float> k_rows[kTileTokens];
    const int residual = std::clamp(source.computed, begin, std::max(begin, end)) - begin;
    const auto residual_row = [&](const F16* rows, int i) {
      return KvRow<F16>{rows + (begin + i) % source.cache.residual.tokens * head_dim_, 1.0F};
    };
    const auto new_row = [&](const float* rows, int i) {
      return KvRow<float>{rows + (begin + i - source.computed) * source.stride, 1.0F};
    };
    float* const values = values_ + count * width_;  // K first rests where V comes to lie
    for (int i = 0; i < residual; ++i) {
      widen(residual_row(source.residual_k, i), values + i * width_);
      k_rows[i] = {values + i * width_, 1.0F};
    }
    for (int i = residual; i < end - begin; ++i) k_rows[i] = new_row(source.new_k, i);
    transpose_rows(k_rows, count, std::max(0, end - begin));
    for (int i = 0; i < residual; ++i) widen(residual_row(source.residual_v, i), values + i * width_);
    for (int i = residual; i < end - begin; ++i) widen(new_row(source.new_v, i), values + i * width_);
  }

  int head_dim_, value_dim_, width_;
  float* keys_;
  float* values_;
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
