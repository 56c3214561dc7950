// kvquant4, kvquant3 and kvquant2: tiles of codes and outliers, keys rotated as they are read.
#if defined(DCULAB_KERNELS_CPU_KV_KVQUANT_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_KVQUANT_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_KVQUANT_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_KVQUANT_INL_HPP_
#endif

#include <algorithm>
#include <limits>

#include "kernels/cpu/kv/kv_kernels.hpp"
#include "kernels/cpu/kv/tile_floats-inl.hpp"
#include "kernels/cpu/rotation-inl.hpp"
#include "kernels/kv/kvquant.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// The levels that codes of kBits bits choose among.
template <int kBits>
class Levels {
 public:
  explicit HWY_INLINE Levels(const float* levels)
      : levels_(levels),
        lower_(load_first(levels, kCount)),
        upper_(kCount > kLanes ? load_first(levels + kCount - kLanes, kLanes) : lower_) {}

  template <typename Codes>
  [[nodiscard]] HWY_INLINE Vector of(Codes codes) const {
    const hn::RebindToSigned<F32> d;
    if constexpr (kCount <= kLanes) {
      return hn::TableLookupLanes(lower_, hn::IndicesFromVec(F32(), codes));
    } else if constexpr (kCount == 2 * kLanes) {
      const auto lanes = hn::IndicesFromVec(F32(), hn::And(codes, hn::Set(d, kLanes - 1)));
      const auto is_upper = hn::RebindMask(F32(), hn::Gt(codes, hn::Set(d, kLanes - 1)));
      return hn::IfThenElse(is_upper, hn::TableLookupLanes(upper_, lanes), hn::TableLookupLanes(lower_, lanes));
    } else {
      return hn::GatherIndex(F32(), levels_, codes);
    }
  }

 private:
  static constexpr int kCount = 1 << kBits;
  const float* levels_;
  Vector lower_, upper_;  // the first lanes of them, and the last
};

// Reads the tokens of one KV head.
template <int kBits>
class KvQuantReader {
 public:
  KvQuantReader(const KvCacheView& cache, int kv_head)
      : cache_(cache),
        layout_(cache),
        kv_head_(kv_head),
        first_channel_(layout_.extras.first_channel + kv_head * cache.head_dim) {}

  // to[head_dim], rotated by the position.
  void load_key(std::int64_t slot, int position, float* to) const {
    const float* const centres = layout_.centres() + first_channel_;
    const float* const half_ranges = layout_.half_ranges() + first_channel_;
    for_each_level(layout_.codes(cache_.k, slot, kv_head_), layout_.k_levels(), [&](int d, int count, Vector level) {
      store_first(hn::MulAdd(level, load_first(half_ranges + d, count), load_first(centres + d, count)), to + d, count);
    });
    put_outliers(layout_.extras.k_outliers, slot, to);
    if (layout_.extras.cos_sin == nullptr) return;
    const int turned = layout_.turned_values();
    const auto turn = layout_.extras.neighbours ? rotate_neighbours : rotate;
    turn(to, layout_.extras.cos_sin + std::ptrdiff_t{position} * turned, turned / 2);
  }

  void load_value(std::int64_t slot, float* to) const {
    const KvQuantScale scale = layout_.extras.v_scales[slot];
    const Vector centre = hn::Set(F32(), f32_from_f16(scale.centre));
    const Vector half_range = hn::Set(F32(), f32_from_f16(scale.half_range));
    for_each_level(layout_.codes(cache_.v, slot, kv_head_), layout_.v_levels(), [&](int d, int count, Vector level) {
      store_first(hn::MulAdd(level, half_range, centre), to + d, count);
    });
    put_outliers(layout_.extras.v_outliers, slot, to);
  }

  // What `tokens` tokens from `slot` on, of one block, are read from.
  void add_lines(LinesAhead& ahead, std::int64_t slot, int tokens) const {
    for (void* const pool : {cache_.k, cache_.v})
      ahead.add(layout_.codes(pool, slot, kv_head_), tokens * layout_.row_bytes());
    for (const KvQuantOutlier* outliers : {layout_.extras.k_outliers, layout_.extras.v_outliers})
      ahead.add(outliers + slot * layout_.outliers, tokens * layout_.outliers * kKvQuantOutlierBytes);
    ahead.add(layout_.extras.v_scales + slot, tokens * kKvQuantScaleBytes);
  }

 private:
  // body(d, count, levels of the codes from d on), count of them at least one and at most the lanes.
  template <typename Body>
  HWY_INLINE void for_each_level(const std::uint8_t* row, const float* levels, Body&& body) const {
    const Levels<kBits> known(levels);
    for (int d = 0; d < layout_.head_dim; d += kLanes) {
      const int count = std::min(kLanes, layout_.head_dim - d);
      body(d, count, known.of(load_codes(row + d / 8 * kBits, d % 8, count)));
    }
  }

  // Codes from one on of the eight that lie in kBits bytes; `count` of more than eight from those behind them.
  static HWY_INLINE hn::Vec<hn::RebindToSigned<F32>> load_codes(const std::uint8_t* from, int first, int count) {
    const hn::RebindToUnsigned<F32> d;
    auto words = hn::Set(d, load_word(from));
#if HWY_TARGET <= HWY_AVX3
    words = hn::ConcatLowerLower(d, hn::Set(d, count > 8 ? load_word(from + kBits) : 0U), words);
#else
    static_cast<void>(count);
#endif
    const auto eighth = hn::Add(hn::And(hn::Iota(d, 0), hn::Set(d, 7U)), hn::Set(d, static_cast<std::uint32_t>(first)));
    const auto shifted = words >> hn::Mul(eighth, hn::Set(d, static_cast<std::uint32_t>(kBits)));
    return hn::BitCast(hn::RebindToSigned<F32>(), hn::And(shifted, hn::Set(d, (1U << kBits) - 1)));
  }

  // Three bytes copied through memory would wait for their store.
  static HWY_INLINE std::uint32_t load_word(const std::uint8_t* from) {
    std::uint32_t word = 0;
    for (int byte = 0; byte < kBits; ++byte) word |= std::uint32_t{from[byte]} << (8 * byte);
    return word;
  }

  void put_outliers(const KvQuantOutlier* outliers, std::int64_t slot, float* to) const {
    const KvQuantOutlier* const begin = outliers + slot * layout_.outliers;
    const KvQuantOutlier* const end = begin + layout_.outliers;
    const KvQuantOutlier* at =
        std::lower_bound(begin, end, first_channel_,
                         [](const KvQuantOutlier& outlier, int channel) { return outlier.channel < channel; });
    for (; at != end && at->channel < first_channel_ + layout_.head_dim; ++at)
      to[at->channel - first_channel_] = f32_from_f16(at->value);
  }

  const KvCacheView& cache_;
  KvQuantLayout layout_;
  int kv_head_, first_channel_;
};

template <int kBits>
struct KvQuant {
  static void take_unrotated(const RopeAndCacheArgs& args, int token, const float* k, const float* v) {
    const std::int64_t slot = args.slot_mapping[token];
    if (slot >= 0) store_kvquant(args.cache, slot, k, v);
  }
  static void take_rotated(const RopeAndCacheArgs& /*args*/, float* /*k*/, float* /*v*/) {}

  static int paged_tokens(const KvCacheView& /*cache*/, int /*context*/) { return std::numeric_limits<int>::max(); }

  static void add_lines(LinesAhead& ahead, const KvCacheView& cache, const KvRuns::Run& run) {
    KvQuantReader<kBits>(cache, head_of(cache, run)).add_lines(ahead, slot_of(cache, run), run.tokens);
  }

  static HWY_NOINLINE void fill(const KvSource& source, const KvRuns& where, const TileFloats& tile, LinesAhead& ahead,
                                int lines_per_token) {
    const KvQuantReader<kBits> reader(source.cache, source.kv_head);
    KvRow<float> k_rows[kTileTokens];
    int count = 0;
    // K first rests where V comes to lie.
    for_each_token(source.cache, where, [&](std::int64_t slot) {
      float* const row = tile.values + count * tile.width;
      reader.load_key(slot, where.begin + count, row);
      k_rows[count++] = {row, 1.0F};
      ahead.ask(lines_per_token);
    });
    tile.transpose_rows(k_rows, 0, count);
    count = 0;
    for_each_token(source.cache, where,
                   [&](std::int64_t slot) { reader.load_value(slot, tile.values + count++ * tile.width); });
  }

 private:
  static int head_of(const KvCacheView& cache, const KvRuns::Run& run) {
    return static_cast<int>(run.row % cache.heads_in_block());
  }
  static std::int64_t slot_of(const KvCacheView& cache, const KvRuns::Run& run) {
    return run.row / cache.heads_in_block() * cache.block_size + run.offset;
  }

  template <typename Body>
  static HWY_INLINE void for_each_token(const KvCacheView& cache, const KvRuns& where, Body&& body) {
    for (int i = 0; i < where.num_runs; ++i)
      for (int token = 0; token < where.runs[i].tokens; ++token) body(slot_of(cache, where.runs[i]) + token);
  }
};

template <int kBits>
inline constexpr bool kLiesInRows<KvQuant<kBits>> = false;

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
