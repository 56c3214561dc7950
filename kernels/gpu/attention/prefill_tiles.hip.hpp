// What a workgroup of prefill_attention_kernel keeps in shared memory, and how it gets there.
//
// Word is a 4-byte word of shared memory: a HalfPair or a float (PrefillArithmetic). The i-th word of a query or key
// holds its values 2i and 2i + 1; the word [i][d] of the values, tokens i and i + 16 of column d. A float is both at
// once, with one value. So scores and outputs are both sums of add_product(word, word, sum).
#pragma once

#include <type_traits>

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/kv_cache/paged_kv.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

template <typename Word>
inline constexpr int kValuesPerWord = 1;
template <>
inline constexpr int kValuesPerWord<HalfPair> = 2;

template <typename Word>
inline constexpr PrefillArithmetic kArithmetic = PrefillArithmetic::floats;
template <>
inline constexpr PrefillArithmetic kArithmetic<HalfPair> = PrefillArithmetic::half_pairs;

__device__ __forceinline__ float add_product(HalfPair a, HalfPair b, float sum) { return dot2(a, b, sum); }
__device__ __forceinline__ float add_product(float a, float b, float sum) { return sum + a * b; }

inline constexpr std::int32_t kNoPosition = -(1 << 30);  // of a row that there is not: before every token

// A row of a tile of queries.
struct QueryRow {
  std::int32_t position;  // in its sequence, or kNoPosition
  float alibi_slope;
};

// Rows are 16 bytes longer than their contents: lanes that read neighbouring rows meet other banks. kHeadDim: of
// queries and keys.
template <typename Word, int kHeadDim, int kValueDim = kHeadDim>
struct PrefillTiles {
  using Value = Word;
  static constexpr int kQueryDim = kHeadDim;
  static constexpr PrefillTile kTile = prefill_tile(kArithmetic<Word>, kHeadDim);
  static constexpr int kRowWords = kHeadDim / kValuesPerWord<Word>;

  alignas(16) Word queries[kTile.rows][kRowWords + 4];
  union {  // one after the other
    alignas(16) Word keys[kTile.tokens][kRowWords + 4];
    alignas(16) Word values[kPrefillLanes][kValueDim];
  };
  alignas(16) Word weights[kTile.rows][kPrefillLanes + 4];  // of the softmax; word i: tokens i and i + 16
  QueryRow rows[kTile.rows];
};

// Workgroups that a compute unit of gfx906, with 64 KB of shared memory, is to hold: what registers are limited for.
template <typename Tiles>
inline constexpr int kPrefillWorkgroups = sizeof(Tiles) <= 32 * 1024 ? 2 : 1;

// 16 bytes of a key or value, as they lie in the cache.
using KvBytes = Pack<std::uint32_t, 4>;

// The values of 16 bytes of the cache in kWords words, in order.
template <int kWords>
__device__ __forceinline__ void unpack(const KvBytes& bytes, Half, HalfPair (&words)[kWords]) {
  DCULAB_UNROLL
  for (int i = 0; i < kWords; ++i) words[i] = HalfPair{bytes[i]};
}
template <typename Stored, int kWords>
__device__ __forceinline__ void unpack(const KvBytes& bytes, Stored, HalfPair (&words)[kWords]) {
  DCULAB_UNROLL
  for (int i = 0; i < kWords; ++i) words[i] = to_half_pair<Stored>(bytes[i / 2] >> (16 * (i % 2)));
}
template <typename Stored, int kWords>
__device__ __forceinline__ void unpack(const KvBytes& bytes, Stored, float (&words)[kWords]) {
  const auto stored = __builtin_bit_cast(Pack<Stored, kWords>, bytes);
  DCULAB_UNROLL
  for (int i = 0; i < kWords; ++i) words[i] = to_float(stored[i]);
}

template <int kWords, typename Word>
__device__ __forceinline__ void store_words(Word* shared, const Word (&words)[kWords]) {
  static_assert(kWords % 4 == 0);
  DCULAB_UNROLL
  for (int i = 0; i < kWords; i += 4)
    *reinterpret_cast<Pack<Word, 4>*>(shared + i) = {words[i], words[i + 1], words[i + 2], words[i + 3]};
}

// The tokens that a sequence's workgroup reads: K or V of one KV head.
struct KvSequence {
  KvCacheView cache;
  const std::int32_t* block_table;
  int kv_head;
  int end;  // tokens beyond are not read, but zero
};

enum class KvTensor : std::uint8_t { k, v };

// One tile of K or V, of heads of kHeadDim values, on its way from the cache through registers to shared memory. A lane
// takes the same 16 bytes of tokens i and, if a word holds two values, i + 16.
template <typename Word, int kHeadDim>
class KvCourier {
 public:
  // Where the tile from `first` on lies.
  __device__ __forceinline__ void locate(const KvSequence& sequence, int first) {
    const int bytes_per_value = is_of_bytes(sequence.cache) ? 1 : 2;
    DCULAB_UNROLL
    for (int i = 0; i < kParts; ++i) {
      const int row = row_of(sequence, i);
      DCULAB_UNROLL
      for (int j = 0; j < kTokens; ++j) {
        const int token = first + row + j * kPrefillLanes;
        places_[i][j] = -1;
        if (row >= kPrefillLanes || token >= sequence.end) continue;
        const std::int64_t values = cache_row_of_token(sequence.cache, sequence.block_table, sequence.kv_head, token);
        places_[i][j] = static_cast<std::int32_t>(values * bytes_per_value / 16) + part_of_row(sequence, i);
      }
    }
  }

  // From the K or the V of the cache.
  __device__ __forceinline__ void fetch(const void* cache) {
    DCULAB_UNROLL
    for (int i = 0; i < kParts; ++i) {
      DCULAB_UNROLL
      for (int j = 0; j < kTokens; ++j) {
        fetched_[i][j] = KvBytes{};
        if (places_[i][j] < 0) continue;
        fetched_[i][j] = load(static_cast<const KvBytes*>(cache) + places_[i][j]);
      }
    }
  }

  template <typename Tiles>
  __device__ __forceinline__ void put_keys(const KvSequence& sequence, Tiles& tiles) const {
    with_stored(sequence, [&](auto stored) {
      constexpr int kWords = kWordsOf<decltype(stored)>;
      each_part(sequence, [&](int i, int row, int part) {
        DCULAB_UNROLL
        for (int j = 0; j < kTokens; ++j) {
          Word words[kWords];
          unpack(fetched_[i][j], stored, words);
          scale<KvTensor::k, decltype(stored)>(words, sequence.cache, places_[i][j]);
          store_words(&tiles.keys[row + j * kPrefillLanes][part * kWords], words);
        }
      });
    });
  }

  template <typename Tiles>
  __device__ __forceinline__ void put_values(const KvSequence& sequence, Tiles& tiles) const {
    with_stored(sequence, [&](auto stored) {
      constexpr int kWords = kWordsOf<decltype(stored)>;
      each_part(sequence, [&](int i, int row, int part) {
        Word words[kTokens][kWords], columns[kTokens * kWords];
        DCULAB_UNROLL
        for (int j = 0; j < kTokens; ++j) {
          unpack(fetched_[i][j], stored, words[j]);
          scale<KvTensor::v, decltype(stored)>(words[j], sequence.cache, places_[i][j]);
        }
        transpose(words, columns);
        store_words(&tiles.values[row][part * kTokens * kWords], columns);
      });
    });
  }

 protected:
  static constexpr int kTokens = kValuesPerWord<Word>;
  static constexpr int kParts = ceiling_quotient(kPrefillLanes * kHeadDim / 8, kPrefillThreads);

  // Part `i` of this lane: a token of the tile (none if 16 or more), and which 16 bytes of it.
  __device__ __forceinline__ static int row_of(const KvSequence& sequence, int i) {
    const int part = thread_index() + i * kPrefillThreads;
    return is_of_bytes(sequence.cache) ? part / (kHeadDim / 16) : part / (kHeadDim / 8);
  }
  __device__ __forceinline__ static int part_of_row(const KvSequence& sequence, int i) {
    const int part = thread_index() + i * kPrefillThreads;
    return is_of_bytes(sequence.cache) ? part % (kHeadDim / 16) : part % (kHeadDim / 8);
  }

  std::int32_t places_[kParts][kTokens];  // in KvBytes from the start of the cache; < 0: nothing to read
  KvBytes fetched_[kParts][kTokens];

 private:
  template <typename Stored>
  static constexpr int kWordsOf = 16 / sizeof(Stored) / kValuesPerWord<Word>;

  template <typename Body>
  __device__ __forceinline__ static void each_part(const KvSequence& sequence, Body body) {
    DCULAB_UNROLL
    for (int i = 0; i < kParts; ++i)
      if (row_of(sequence, i) < kPrefillLanes) body(i, row_of(sequence, i), part_of_row(sequence, i));
  }

  template <typename Body>
  __device__ __forceinline__ static void with_stored(const KvSequence& sequence, Body body) {
    const Dtype dtype = sequence.cache.dtype;
    if (dtype == Dtype::fp8_e4m3) return body(Fp8E4M3{});
    if (dtype == Dtype::fp8_e5m2) return body(Fp8E5M2{});
    if (dtype == Dtype::int8) return body(Int8{});
    if constexpr (kValuesPerWord<Word> == 1)
      if (dtype == Dtype::bf16) return body(Bf16{});
    body(Half{});
  }

  // Codes of int8 become what they stand for; of a token that there is not they are zeros anyhow.
  template <KvTensor kTensor, typename Stored, int kWords>
  __device__ __forceinline__ static void scale(Word (&words)[kWords], const KvCacheView& cache, std::int32_t place) {
    if constexpr (kHasTokenScales<Stored>) {
      const auto scales = cache.extras.as<Int8KvScales>();
      const float* const of_tensor = kTensor == KvTensor::k ? scales.k : scales.v;
      const float factor = place < 0 ? 0.0F : load(of_tensor + place / (kHeadDim / 16));
      DCULAB_UNROLL
      for (int i = 0; i < kWords; ++i) words[i] = scaled(words[i], factor);
    }
  }
  __device__ __forceinline__ static HalfPair scaled(HalfPair pair, float factor) {
    return pair_of(from_float<Half>(low_of(pair) * factor), from_float<Half>(high_of(pair) * factor));
  }
  __device__ __forceinline__ static float scaled(float value, float factor) { return value * factor; }

  // From two neighbouring values of a token in a word to two tokens of a column.
  template <int kWords>
  __device__ __forceinline__ static void transpose(const HalfPair (&tokens)[2][kWords],
                                                   HalfPair (&columns)[2 * kWords]) {
    DCULAB_UNROLL
    for (int i = 0; i < kWords; ++i) {
      columns[2 * i] = pair_of(low_half(tokens[0][i]), low_half(tokens[1][i]));
      columns[2 * i + 1] = pair_of(high_half(tokens[0][i]), high_half(tokens[1][i]));
    }
  }
  template <int kWords>
  __device__ __forceinline__ static void transpose(const float (&tokens)[1][kWords], float (&columns)[kWords]) {
    DCULAB_UNROLL
    for (int i = 0; i < kWords; ++i) columns[i] = tokens[0][i];
  }
};

// Brings K and V of a sequence in, tile by tile.
template <typename Word, int kHeadDim, int kValueDim>
class KvCouriers {
 public:
  __device__ __forceinline__ void locate(const KvSequence& sequence, int first) {
    keys_.locate(sequence, first);
    if constexpr (kHeadDim != kValueDim) {
      KvSequence values = sequence;
      values.cache.head_dim = kValueDim;
      values_.locate(values, first);
    }
  }
  __device__ __forceinline__ void fetch_keys(const KvCacheView& cache) { keys_.fetch(cache.k); }
  __device__ __forceinline__ void fetch_values(const KvCacheView& cache) { values().fetch(cache.v); }
  template <typename Tiles>
  __device__ __forceinline__ void put_keys(const KvSequence& sequence, Tiles& tiles) const {
    keys_.put_keys(sequence, tiles);
  }
  template <typename Tiles>
  __device__ __forceinline__ void put_values(const KvSequence& sequence, Tiles& tiles) {
    values().put_values(sequence, tiles);
  }

 private:
  struct Same {};  // K and V of equal heads lie in equal places
  __device__ __forceinline__ auto& values() {
    if constexpr (kHeadDim == kValueDim)
      return keys_;
    else
      return values_;
  }

  KvCourier<Word, kHeadDim> keys_;
  std::conditional_t<kHeadDim == kValueDim, Same, KvCourier<Word, kValueDim>> values_;
};

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
