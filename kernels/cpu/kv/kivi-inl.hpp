// kivi4 and kivi2: tiles of units of the blocks, of the residual and of new tokens.
#if defined(DCULAB_KERNELS_CPU_KV_KIVI_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_KIVI_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_KIVI_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_KIVI_INL_HPP_
#endif

#include <algorithm>
#include <cstring>

#include "kernels/cpu/kv/tile_floats-inl.hpp"
#include "kernels/kv/kivi.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// Codes [kFirst, kFirst + lanes) of a unit.
template <int kBits, int kFirst>
HWY_INLINE Vector load_codes(const std::uint8_t* unit) {
  constexpr int kBytes = kKiviGroup / 8 * kBits;
  const hn::RebindToSigned<F32> d;
  const auto mask = hn::Set(d, (1 << kBits) - 1);
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kLanes > kBytes) {  // 16 lanes of 8 bytes: twice the same, the upper half one code further
    std::uint64_t bytes;
    std::memcpy(&bytes, unit, sizeof bytes);
    bytes >>= kFirst / kBytes * kBits;
    const hn::Full128<std::uint64_t> d64;
    const auto both = hn::InterleaveLower(d64, hn::Set(d64, bytes), hn::Set(d64, bytes >> kBits));
    return hn::ConvertTo(F32(), hn::And(hn::PromoteTo(d, hn::BitCast(hn::Rebind<std::uint8_t, F32>(), both)), mask));
  }
#else
  static_assert(kLanes <= kBytes);
#endif
  const auto bytes = hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint8_t, F32>(), unit + kFirst % kBytes));
  return hn::ConvertTo(F32(), hn::And(hn::ShiftRight<kFirst / kBytes * kBits>(bytes), mask));
}

// The 32 values of a unit.
template <int kBits>
HWY_INLINE void load_unit(const std::uint8_t* codes, float scale, float zero, float* to) {
  const Vector scales = hn::Set(F32(), scale), zeros = hn::Set(F32(), zero);
  unrolled<kKiviGroup / kLanes>([&](auto i) DCULAB_INLINE {
    store(hn::MulAdd(load_codes<kBits, i * kLanes>(codes), scales, zeros), to + i * kLanes);
  });
}

// The tokens of a sequence and KV head that are in no block: in the residual below `computed`, and new from it on.
class UnpagedKv {
 public:
  explicit UnpagedKv(const KvSource& source) {
    const KvCacheView& cache = source.cache;
    const auto [residual, new_kv] = cache.extras.as<KiviExtras>();
    const std::int32_t* const start = source.args.query_start_loc + source.seq;
    const std::ptrdiff_t row = std::ptrdiff_t{new_kv.residual_rows[source.seq]} * cache.num_kv_heads + source.kv_head;
    const std::ptrdiff_t offset = row * residual.tokens * cache.head_dim;
    const std::ptrdiff_t first = start[0] * new_kv.stride + source.kv_head * cache.head_dim;
    computed_ = source.args.context_lens[source.seq] - (start[1] - start[0]);
    tokens_ = residual.tokens, stride_ = new_kv.stride;
    residual_k_ = reinterpret_cast<const F16*>(residual.k) + offset;
    residual_v_ = reinterpret_cast<const F16*>(residual.v) + offset;
    new_k_ = new_kv.k + first, new_v_ = new_kv.v + first;
  }

  // Tokens [begin, end), behind `count` others of the tile.
  void fill(const TileFloats& tile, int begin, int end, int count) const {
    KvRow<float> k_rows[kTileTokens];
    const int residual = std::clamp(computed_, begin, std::max(begin, end)) - begin;
    const auto residual_row = [&](const F16* rows, int i) {
      return KvRow<F16>{rows + (begin + i) % tokens_ * tile.head_dim, 1.0F};
    };
    const auto new_row = [&](const float* rows, int i) {
      return KvRow<float>{rows + (begin + i - computed_) * stride_, 1.0F};
    };
    float* const values = tile.values + count * tile.width;  // K first rests where V comes to lie
    for (int i = 0; i < residual; ++i) {
      tile.widen(residual_row(residual_k_, i), values + i * tile.width);
      k_rows[i] = {values + i * tile.width, 1.0F};
    }
    for (int i = residual; i < end - begin; ++i) k_rows[i] = new_row(new_k_, i);
    tile.transpose_rows(k_rows, count, std::max(0, end - begin));
    for (int i = 0; i < residual; ++i) tile.widen(residual_row(residual_v_, i), values + i * tile.width);
    for (int i = residual; i < end - begin; ++i) tile.widen(new_row(new_v_, i), values + i * tile.width);
  }

 private:
  int computed_ = 0, tokens_ = 0;
  std::int64_t stride_ = 0;
  const F16* residual_k_ = nullptr;  // [tokens, head_dim]
  const F16* residual_v_ = nullptr;
  const float* new_k_ = nullptr;  // [new tokens, stride]
  const float* new_v_ = nullptr;
};

template <int kBits>
struct Kivi {
  // Nothing is stored: groups of tokens are quantized once they are complete, all from numbers of the same precision.
  static void take_unrotated(const RopeAndCacheArgs& /*args*/, int /*token*/, const float* /*k*/, const float* /*v*/) {}
  static void take_rotated(const RopeAndCacheArgs& args, float* k, float* v) {
    const int width = args.cache.num_kv_heads * args.cache.head_dim;
    round_to_f16(k, width);
    round_to_f16(v, width);
  }

  // For queries the first of which is the last of `context` tokens.
  static int paged_tokens(const KvCacheView& cache, int context) {
    return kivi_quantized_tokens(context, cache.extras.as<KiviExtras>().residual.tokens);
  }

  static void add_lines(LinesAhead& ahead, const KvCacheView& cache, const KvRuns::Run& run) {
    const KiviLayout layout(cache);
    const int units = run.tokens * cache.head_dim / kKiviGroup;
    for (void* const pool : {cache.k, cache.v}) {
      const KiviUnit first = layout.unit(pool, run.row, run.offset * cache.head_dim / kKiviGroup);
      ahead.add(first.codes, units * layout.code_bytes());
      ahead.add(first.scale, units * 2);
      ahead.add(first.zero, units * 2);
    }
  }

  static HWY_NOINLINE void fill(const KvSource& source, const KvRuns& where, const TileFloats& tile, LinesAhead& ahead,
                                int lines_per_token) {
    int count = 0;
    for (int i = 0; i < where.num_runs; ++i) {
      fill_units(source.cache, where.runs[i], tile, count, ahead, lines_per_token);
      count += where.runs[i].tokens;
    }
    UnpagedKv(source).fill(tile, where.unpaged_begin, where.unpaged_end, count);
  }

 private:
  static void round_to_f16(float* values, int count) {
    F16 rounded[kLanes];
    for (int i = 0; i < count; i += kLanes) {
      store(load_first(values + i, count - i), rounded);
      store_first(load(rounded), values + i, count - i);
    }
  }

  // A run; the tile's tokens begin `count` tokens before it.
  static void fill_units(const KvCacheView& cache, const KvRuns::Run& run, const TileFloats& tile, int count,
                         LinesAhead& ahead, int lines_per_token) {
    const KiviLayout layout(cache);
    const int head_dim = tile.head_dim, units_per_token = head_dim / kKiviGroup;
    const int units = run.tokens * head_dim / kKiviGroup, first = run.offset * head_dim / kKiviGroup;
    const KiviUnit k = layout.unit(cache.k, run.row, first), v = layout.unit(cache.v, run.row, first);
    const int units_before = count * head_dim / kKiviGroup;
    const auto key = [&](int unit) {
      const int group = (units_before + unit) / head_dim, d = (units_before + unit) % head_dim;
      return tile.keys + d * kTileTokens + group * kKiviGroup;
    };
    const auto value = [&](int unit) {
      return tile.values + (count + unit / units_per_token) * tile.width + unit % units_per_token * kKiviGroup;
    };
    load_units(k, units, key, ahead, 0);
    load_units(v, units, value, ahead, lines_per_token * kLanes);
  }

  // Units in a row; unit i goes to to(i).
  template <typename Place>
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
};

template <int kBits>
inline constexpr bool kLiesInRows<Kivi<kBits>> = false;

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
