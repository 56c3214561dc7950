// Attention of prefill over a KIVI cache: the tiles of prefill_attention.hip.hpp, in two walks. The first takes in the
// groups that any row of the workgroup sees quantized, the second the tokens that any row sees as they were computed; a
// token on the border is in both, and each row sees it in one.
#pragma once

#include "kernels/gpu/attention/prefill_attention.hip.hpp"
#include "kernels/gpu/kv/kivi_units.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

enum class SeenAs : std::uint8_t { quantized, exact };

template <SeenAs kAs>
struct KiviSight {
  int window, residual_tokens;
  [[nodiscard]] __device__ __forceinline__ bool operator()(int distance, const QueryRow& row) const {
    const int quantized = kivi_quantized_tokens(row.position + 1, residual_tokens);
    const bool is_quantized = row.position + distance < quantized;
    return distance <= 0 && distance > -window && is_quantized == (kAs == SeenAs::quantized);
  }
};

__device__ __forceinline__ void set_word(HalfPair& word, const float (&values)[2]) {
  word = pair_of(from_float<Half>(values[0]), from_float<Half>(values[1]));
}
__device__ __forceinline__ void set_word(float& word, const float (&values)[1]) { word = values[0]; }

// Brings tiles of quantized tokens in: a lane has a word of codes of as many channels of K, or tokens of V, as a word
// of shared memory has values. A tile is a group of tokens, or half of one.
template <typename Word, int kBits, int kHeadDim>
class QuantizedCouriers {
 public:
  __device__ __forceinline__ void locate(const KvSequence& sequence, int first) {
    table_ = sequence.block_table, kv_head_ = sequence.kv_head;
    first_ = first, has_tile_ = first < sequence.end;
  }

  __device__ __forceinline__ void fetch_keys(const KvCacheView& cache) {
    const int group = first_ / kKiviGroup * kKiviGroup;
    const KiviParts parts(cache, group);
    each_part<kKeyParts>([&](int i, int part) {
      const int d = part / kBits * kTogether;
      DCULAB_UNROLL
      for (int j = 0; j < kTogether; ++j) {
        fetched_[i][j] = {};
        if (!has_tile_ || d >= kHeadDim) continue;
        const std::int32_t block = load(table_ + group / cache.block_size + parts.part(d + j));
        fetched_[i][j] = fetch(KiviRecord<kBits>(cache.k, cache, block, kv_head_), parts.unit(d + j), part % kBits);
      }
    });
  }

  __device__ __forceinline__ void fetch_values(const KvCacheView& cache) {
    each_part<kValueParts>([&](int i, int part) {
      const int row = part / (kBits * kUnits), unit = part / kBits % kUnits;
      DCULAB_UNROLL
      for (int j = 0; j < kTogether; ++j) {
        fetched_[i][j] = {};
        if (!has_tile_ || row >= kPrefillLanes) continue;
        const int token = first_ + row + j * kPrefillLanes;
        const std::int32_t block = load(table_ + token / cache.block_size);
        fetched_[i][j] = fetch(KiviRecord<kBits>(cache.v, cache, block, kv_head_),
                               token % cache.block_size * kUnits + unit, part % kBits);
      }
    });
  }

  template <typename Tiles>
  __device__ __forceinline__ void put_keys(const KvSequence& /*sequence*/, Tiles& tiles) const {
    const int begin = first_ % kKiviGroup;  // of the tile, in its group
    each_part<kKeyParts>([&](int i, int part) {
      if (part / kBits * kTogether >= kHeadDim) return;
      DCULAB_UNROLL
      for (int p = 0; p < kTilePlanes; ++p) {
        const int plane = begin / kPrefillLanes * kTilePlanes + p;
        DCULAB_UNROLL
        for (int c = 0; c < 4; ++c)
          tiles.keys[kivi_value<kBits>(part % kBits, plane, c) - begin][part / kBits] = word_of(i, plane, c);
      }
    });
  }

  template <typename Tiles>
  __device__ __forceinline__ void put_values(const KvSequence& /*sequence*/, Tiles& tiles) const {
    each_part<kValueParts>([&](int i, int part) {
      const int row = part / (kBits * kUnits), unit = part / kBits % kUnits;
      if (row >= kPrefillLanes) return;
      DCULAB_UNROLL
      for (int plane = 0; plane < kKiviPlanes<kBits>; ++plane) {
        Word words[4];
        DCULAB_UNROLL
        for (int c = 0; c < 4; ++c) words[c] = word_of(i, plane, c);
        store_words(&tiles.values[row][unit * kKiviGroup + kivi_value<kBits>(part % kBits, plane, 0)], words);
      }
    });
  }

 private:
  static constexpr int kTogether = kValuesPerWord<Word>;
  static constexpr int kUnits = kHeadDim / kKiviGroup;
  static constexpr int kTilePlanes = kKiviPlanes<kBits> * kTogether / 2;  // of a tile's tokens
  static constexpr int kKeyParts = ceiling_quotient(kHeadDim / kTogether * kBits, kPrefillThreads);
  static constexpr int kValueParts = ceiling_quotient(kPrefillLanes * kUnits * kBits, kPrefillThreads);

  struct Codes {
    std::uint32_t word;
    Half scale, zero;
  };

  __device__ __forceinline__ static Codes fetch(const KiviRecord<kBits>& record, int unit, int word) {
    return {load(record.codes(unit) + word), load(record.scale(unit)), load(record.zero(unit))};
  }

  template <int kParts, typename Body>
  __device__ __forceinline__ static void each_part(Body body) {
    DCULAB_UNROLL
    for (int i = 0; i < kParts; ++i) body(i, thread_index() + i * kPrefillThreads);
  }

  [[nodiscard]] __device__ __forceinline__ Word word_of(int i, int plane, int c) const {
    float values[kTogether];
    DCULAB_UNROLL
    for (int j = 0; j < kTogether; ++j) {
      const Codes& codes = fetched_[i][j];
      values[j] =
          fused_multiply_add(kivi_code<kBits>(codes.word, plane, c), to_float(codes.scale), to_float(codes.zero));
    }
    Word word;
    set_word(word, values);
    return word;
  }

  const std::int32_t* table_;
  int kv_head_, first_;
  bool has_tile_;
  Codes fetched_[kKeyParts > kValueParts ? kKeyParts : kValueParts][kTogether];
};

// Brings tiles of tokens in as they were computed, as halves.
template <typename Word, int kHeadDim>
class ExactCouriers : KvCourier<Word, kHeadDim> {
 public:
  __device__ __forceinline__ explicit ExactCouriers(const ExactTokens& tokens) : tokens_(tokens) {}

  __device__ __forceinline__ void locate(const KvSequence& sequence, int first) { first_ = first, end_ = sequence.end; }
  __device__ __forceinline__ void fetch_keys(const KvCacheView& cache) { fetch(cache, KiviTensor::k); }
  __device__ __forceinline__ void fetch_values(const KvCacheView& cache) { fetch(cache, KiviTensor::v); }

  template <typename Tiles>
  __device__ __forceinline__ void put_keys(const KvSequence& sequence, Tiles& tiles) const {
    Courier::put_keys(in_halves(sequence), tiles);
  }
  template <typename Tiles>
  __device__ __forceinline__ void put_values(const KvSequence& sequence, Tiles& tiles) const {
    Courier::put_values(in_halves(sequence), tiles);
  }

 private:
  using Courier = KvCourier<Word, kHeadDim>;

  __device__ __forceinline__ static KvSequence in_halves(KvSequence sequence) {
    sequence.cache.dtype = Dtype::f16;
    return sequence;
  }

  __device__ __forceinline__ void fetch(const KvCacheView& cache, KiviTensor tensor) {
    const KvSequence halves = in_halves({cache, nullptr, 0, 0});
    DCULAB_UNROLL
    for (int i = 0; i < Courier::kParts; ++i) {
      const int row = Courier::row_of(halves, i), value = Courier::part_of_row(halves, i) * kWide;
      DCULAB_UNROLL
      for (int j = 0; j < Courier::kTokens; ++j) {
        this->places_[i][j] = -1;
        this->fetched_[i][j] = KvBytes{};
        const int token = first_ + row + j * kPrefillLanes;
        if (row >= kPrefillLanes || token >= end_) continue;
        this->fetched_[i][j] = tokens_.template load_halves<Word>(tensor, token, value);
      }
    }
  }

  const ExactTokens& tokens_;
  int first_, end_;
};

// What a workgroup takes in by either walk.
struct KiviWalks {
  KvSequence quantized, exact;
  int quantized_begin, exact_begin;
  int residual_tokens;
};

__device__ __forceinline__ KiviWalks kivi_walks(const PrefillAttention& args, const Attended& attended) {
  KiviWalks walks{attended.sequence, attended.sequence, attended.first / kKiviGroup * kKiviGroup, 0,
                  args.cache.extras.as<KiviOnDevice>().residual.tokens};
  walks.quantized.end = kivi_quantized_tokens(attended.sequence.end, walks.residual_tokens);
  walks.exact_begin = kivi_quantized_tokens(attended.rows.position(0) + 1, walks.residual_tokens);
  if (walks.exact_begin < walks.quantized_begin) walks.exact_begin = walks.quantized_begin;
  return walks;
}

__device__ __forceinline__ ExactTokens exact_tokens(const PrefillAttention& args, const Attended& attended) {
  return {args.cache, KiviPlace(workgroup_z(), args.query_start_loc, args.context_lens), attended.sequence.kv_head};
}

template <int kWave, typename Word, int kBits, int kHeadDim>
__device__ __forceinline__ void attend_to_kivi_on_vector_units(const PrefillAttention& args) {
  using Tiles = PrefillTiles<Word, kHeadDim>;
  DCULAB_SHARED(Tiles, tiles);
  const Attended attended = attended_by_workgroup(args, Tiles::kTile.rows);
  if (!attended.rows.has(0)) return;
  const KiviWalks walks = kivi_walks(args, attended);
  PrefillLane<kWave, Word, kHeadDim, kHeadDim> lane;
  load_queries(args, attended.rows, kHeadDim, tiles);
  QuantizedCouriers<Word, kBits, kHeadDim> codes;
  codes.locate(walks.quantized, walks.quantized_begin);
  codes.fetch_keys(args.cache);
  walk_tiles(args, walks.quantized, walks.quantized_begin, args.scale,
             KiviSight<SeenAs::quantized>{attended.window, walks.residual_tokens}, codes, lane, tiles);
  const ExactTokens tokens = exact_tokens(args, attended);
  ExactCouriers<Word, kHeadDim> rows(tokens);
  rows.locate(walks.exact, walks.exact_begin);
  rows.fetch_keys(args.cache);
  walk_tiles(args, walks.exact, walks.exact_begin, args.scale,
             KiviSight<SeenAs::exact>{attended.window, walks.residual_tokens}, rows, lane, tiles);
  lane.store_outputs(args, attended.rows, 1.0F);
}

template <int kBits, int kHeadDim>
__device__ __forceinline__ void attend_to_kivi_on_matrix_cores(const PrefillAttention& args) {
  using Tiles = MatrixPrefillTiles<kHeadDim>;
  DCULAB_SHARED(Tiles, tiles);
  const Attended attended = attended_by_workgroup(args, Tiles::kTile.rows);
  if (!attended.rows.has(0)) return;
  const KiviWalks walks = kivi_walks(args, attended);
  load_queries(args, attended.rows, kHeadDim, tiles);
  QuantizedCouriers<HalfPair, kBits, kHeadDim> codes;
  codes.locate(walks.quantized, walks.quantized_begin);
  codes.fetch_keys(args.cache);
  barrier();
  MatrixPrefillLane<kHeadDim, kHeadDim> lane(tiles);
  barrier();
  walk_matrix_tiles(args, walks.quantized, walks.quantized_begin, args.scale,
                    KiviSight<SeenAs::quantized>{attended.window, walks.residual_tokens}, codes, lane, tiles);
  const ExactTokens tokens = exact_tokens(args, attended);
  ExactCouriers<HalfPair, kHeadDim> rows(tokens);
  rows.locate(walks.exact, walks.exact_begin);
  rows.fetch_keys(args.cache);
  walk_matrix_tiles(args, walks.exact, walks.exact_begin, args.scale,
                    KiviSight<SeenAs::exact>{attended.window, walks.residual_tokens}, rows, lane, tiles);
  lane.store_outputs(args, attended.rows, 1.0F);
}

// Grid: that of prefill_attention_kernel. Halves go to matrix cores where there are some.
template <int kWave, typename Word, int kBits, int kHeadDim>
__global__ void __launch_bounds__(kPrefillThreads, (kPrefillWorkgroups<PrefillTiles<Word, kHeadDim>>))
    kivi_prefill_kernel(PrefillAttention args) {
  constexpr bool kIsHalf = std::is_same_v<Word, HalfPair> && kWave == kMatrixLanes;
  if constexpr (kMatrixCores != MatrixCores::absent && kIsHalf) {
    if (has_matrix_cores()) return attend_to_kivi_on_matrix_cores<kBits, kHeadDim>(args);
  }
  if constexpr (kMatrixCores != MatrixCores::present || !kIsHalf)
    attend_to_kivi_on_vector_units<kWave, Word, kBits, kHeadDim>(args);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
