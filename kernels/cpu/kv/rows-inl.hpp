// Formats of the KV cache in which a token's K, and its V, are a row of head_dim values of one type. Here those of
// plain numbers; others specialise StoredRows (fp8-inl.hpp, int8-inl.hpp).
#if defined(DCULAB_KERNELS_CPU_KV_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_ROWS_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_ROWS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_ROWS_INL_HPP_
#endif

#include "kernels/cpu/kv/runs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

template <typename T>
constexpr bool kLiesInRows = true;
// Whether a stored value is to be multiplied by a scale.
template <typename T>
constexpr bool kIsScaled = false;

template <typename T>
HWY_INLINE void store_row(const float* values, int count, T* to) {
  for (int i = 0; i < count; i += kLanes) store_first(load_first(values + i, count - i), to + i, count - i);
}

template <typename T>
HWY_INLINE void store_divided(const float* values, int count, float scale, T* to) {
  const Vector divisor = hn::Set(F32(), scale);
  for (int i = 0; i < count; i += kLanes)
    store_first(hn::Div(load_first(values + i, count - i), divisor), to + i, count - i);
}

// The rows of a cache. `row`: of a token and head, counted over the whole pool. A stored value stands for value *
// scale.
template <typename T>
class StoredRows {
 public:
  explicit StoredRows(const KvCacheView& /*cache*/) {}

  [[nodiscard]] HWY_INLINE float k_scale(std::ptrdiff_t /*row*/) const { return 1.0F; }
  [[nodiscard]] HWY_INLINE float v_scale(std::ptrdiff_t /*row*/) const { return 1.0F; }

  // values[count] go to the beginning of the row, which is at `to`.
  void store_k(const float* values, int count, std::ptrdiff_t /*row*/, T* to) const { store_row(values, count, to); }
  void store_v(const float* values, int count, std::ptrdiff_t /*row*/, T* to) const { store_row(values, count, to); }

  // Lines of scales.
  void ask_k(LinesAhead& /*ahead*/, std::ptrdiff_t /*first_row*/, int /*rows*/) const {}
  void ask_v(LinesAhead& /*ahead*/, std::ptrdiff_t /*first_row*/, int /*rows*/) const {}
};

// Of any format, those that are declared further below too.
template <typename T>
HWY_INLINE Vector load_values(const T* from) {
  return load(from);
}

// One token's K or V: a stored value stands for value * scale.
template <typename T>
struct KvRow {
  const T* values;
  float scale;

  // Zero beyond head_dim.
  [[nodiscard]] HWY_INLINE Vector load(int d, int head_dim) const {
    return d + kLanes <= head_dim ? load_whole(d) : scaled(load_first(values + d, head_dim - d));
  }
  [[nodiscard]] HWY_INLINE Vector load_whole(int d) const { return scaled(load_values(values + d)); }

 private:
  [[nodiscard]] HWY_INLINE Vector scaled(Vector stored) const {
    if constexpr (kIsScaled<T>) return hn::Mul(stored, hn::Set(F32(), scale));
    return stored;
  }
};

// K of a row.
template <typename T>
[[nodiscard]] HWY_INLINE KvRow<T> key_row(const KvCacheView& cache, const StoredRows<T>& rows, std::ptrdiff_t row) {
  return {static_cast<const T*>(cache.k) + row * cache.head_dim, rows.k_scale(row)};
}

// Calls body(K, V) with the rows of each token of `where`.
template <typename T, typename Body>
HWY_INLINE void for_each_row(const KvCacheView& cache, const KvRuns& where, Body&& body) {
  const StoredRows<T> rows(cache);
  for (int i = 0; i < where.num_runs; ++i) {
    const KvRuns::Run& run = where.runs[i];
    const std::ptrdiff_t first = first_token(cache, run);
    const T* k = static_cast<const T*>(cache.k) + first * cache.head_dim;
    const T* v = static_cast<const T*>(cache.v) + first * cache.value_stride();
    for (int token = 0; token < run.tokens; ++token, k += cache.head_dim, v += cache.value_stride())
      body(KvRow<T>{k, rows.k_scale(first + token)}, KvRow<T>{v, rows.v_scale(first + token)});
  }
}

// The cache lines of a run's rows.
template <typename T>
void add_lines(LinesAhead& ahead, const KvCacheView& cache, const KvRuns::Run& run) {
  const StoredRows<T> rows(cache);
  const std::ptrdiff_t first = first_token(cache, run);
  const auto add = [&](void* pool, int row_values) {
    const int row_bytes = row_values * static_cast<int>(sizeof(T));
    ahead.add(static_cast<const char*>(pool) + first * row_bytes, run.tokens * row_bytes);
  };
  add(cache.k, cache.head_dim);
  rows.ask_k(ahead, first, run.tokens);
  if (cache.v == cache.k) return;
  add(cache.v, cache.value_stride());
  rows.ask_v(ahead, first, run.tokens);
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
