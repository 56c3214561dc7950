// What one lane of decode attention over a KIVI cache keeps of its query heads, and how it takes in 32 tokens.
//
// Of a group of quantized keys a lane loads words of codes of some channels, so that a wave reads neighbouring bytes,
// and has partial scores of the tokens in a word; of values it owns the channels in its word and takes some tokens.
// Codes are multiplied as they are: queries by the scales of K, weights by those of V, and zeros are summed apart.
// Tokens that are not quantized are taken 32 at a time too, with the channels of V's lanes.
#pragma once

#include "kernels/gpu/attention/paged_attention_heads.hpp"
#include "kernels/gpu/kv/kivi_units.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

template <int kWaveSize, int kBitsOfCode, int kLanesOfToken, int kHeadsOfLane>
struct KiviTile {
  static constexpr int kWave = kWaveSize, kBits = kBitsOfCode, kTokenLanes = kLanesOfToken, kHeads = kHeadsOfLane;
  static constexpr int kPlanes = kKiviPlanes<kBits>, kCodes = kKiviCodes<kBits>;
  static constexpr int kWaves = kPagedAttentionThreads / kWave;
  static constexpr int kChannels = kTokenLanes * kCodes;   // head_dim, rounded up to a power of two
  static constexpr int kWaveTokens = kWave / kTokenLanes;  // whose V a wave loads at a time
  static constexpr int kLoads = kKiviGroup / kWaveTokens;  // words of K, and of V, that a lane loads of a group
  // That are under way at once: at most half of them, for what is the same in all groups would fill the registers.
  static constexpr int kBatch = kLoads < 4 ? kLoads : kLoads / 2 < 4 ? kLoads / 2 : 4;
  static constexpr int kMostRows = 16 / kCodes;  // the same of tokens that are not quantized
  static constexpr int kRows = kLoads < kMostRows ? kLoads : kMostRows;
  static constexpr int kKeyLanes = kWave / kBits;  // that have different channels of K
  static constexpr int kGroups = kPagedAttentionThreads / kTokenLanes;
  static constexpr int kGroupScores = kKiviGroup * kHeads;
  static constexpr int kHeld = kGroupScores < kWave ? 1 : kGroupScores / kWave;  // scores of a group that a lane weighs
  static_assert(kHeads <= kKeyLanes && kWave % kTokenLanes == 0);
};

// Of a wave.
template <typename Tile>
struct KiviWaveShared {
  alignas(16) float scores[kKiviGroup][Tile::kHeads];  // q * k, then the weights of the softmax
  float largest[Tile::kHeads], weights[Tile::kHeads];  // at the end
};

template <typename Tile>
struct KiviShared {
  alignas(16) float queries[Tile::kChannels][Tile::kHeads];
  KiviWaveShared<Tile> waves[Tile::kWaves];
  float numerators[Tile::kGroups][Tile::kChannels];  // at the end, of one head
};

struct KiviAttentionLaunch {
  PagedAttentionLaunch decode;
  int parts = 1;  // workgroups of a group's query heads
};

// What the workgroup works on, and where in it the lane is.
struct KiviWork {
  int seq, kv_head, first_head, heads;
  int context, begin, end;  // tokens; those in [begin, end) are attended to
  int quantized;            // tokens that are seen so
  const std::int32_t* table;
};

// Of the heads of a lane, as far as its wave has come. Softmax: those of head lane % kHeads.
template <typename Tile>
struct KiviState {
  float sums[Tile::kHeads][Tile::kCodes];  // of weights and codes of V, times scales
  float zeros[Tile::kHeads];               // of weights and zeros
  float largest, weights, slope;
};

// Words of K, or of V, on their way.
template <typename Tile>
struct KiviWords {
  std::uint32_t codes[Tile::kBatch];
  Half scales[Tile::kBatch], zeros[Tile::kBatch];
};

template <typename Tile>
__device__ __forceinline__ void load_word(KiviWords<Tile>& words, int i, const KiviRecord<Tile::kBits>& record,
                                          int unit, int word) {
  words.codes[i] = load(record.codes(unit) + word);
  words.scales[i] = load(record.scale(unit));
  words.zeros[i] = load(record.zero(unit));
}

template <typename Tile>
using HeadValues = Pack<float, Tile::kHeads>;

template <typename Tile>
__device__ __forceinline__ HeadValues<Tile> of_heads(const float (&values)[Tile::kHeads]) {
  return *reinterpret_cast<const HeadValues<Tile>*>(values);
}

// Which channels a lane owns: of its word, code i of a plane.
template <typename Tile>
__device__ __forceinline__ int kivi_channel(int token_lane, int plane, int i) {
  return token_lane / Tile::kBits * kKiviGroup + kivi_value<Tile::kBits>(token_lane % Tile::kBits, plane, i);
}

// ---- What is loaded ----

// Blocks of a quantized group: lane i has that of entry i of the table.
template <typename Tile>
__device__ __forceinline__ std::int32_t look_up_blocks(const KvCacheView& cache, const KiviWork& work, int first) {
  const KiviParts parts(cache, first);
  const int lane = lane_index<Tile::kWave>();
  if (first >= work.quantized || lane >= parts.entries) return 0;
  return load(work.table + first / cache.block_size + lane);
}

// Of a token that is not quantized, the channels that the lane owns.
template <typename Tile>
struct ExactRow {
  Numbers<4> planes[Tile::kPlanes];
};

// The lane's rows `batch` to batch + kRows of the 32 tokens from `first`; zeros where there is nothing to attend to.
template <typename Tile>
__device__ __forceinline__ void load_rows(const ExactTokens& tokens, KiviTensor tensor, const KiviWork& work,
                                          int head_dim, int first, int batch, ExactRow<Tile> (&rows)[Tile::kRows]) {
  const int lane = lane_index<Tile::kWave>(), token_lane = lane % Tile::kTokenLanes;
  DCULAB_UNROLL
  for (int r = 0; r < Tile::kRows; ++r) {
    rows[r] = {};
    const int token = first + (batch + r) * Tile::kWaveTokens + lane / Tile::kTokenLanes;
    if (token < work.begin || token >= work.end || kivi_channel<Tile>(token_lane, 0, 0) >= head_dim) continue;
    DCULAB_UNROLL
    for (int plane = 0; plane < Tile::kPlanes; ++plane)
      rows[r].planes[plane] = tokens.load_values<4>(tensor, token, kivi_channel<Tile>(token_lane, plane, 0));
  }
}

// ---- Softmax ----

template <typename Tile>
__device__ __forceinline__ void raise_largest(KiviState<Tile>& state, const float (&scores)[Tile::kHeld]) {
  float raised = state.largest;
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kHeld; ++i) raised = larger(scores[i], raised);
  raised = wave_max<Tile::kWave, Tile::kWave, Tile::kHeads>(raised);
  const float own = fast_exp(state.largest - raised);
  state.largest = raised;
  state.weights *= own;
  DCULAB_UNROLL
  for (int h = 0; h < Tile::kHeads; ++h) {
    const float factor = shuffle<Tile::kWave, Tile::kHeads>(own, h);
    state.zeros[h] *= factor;
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kCodes; ++i) state.sums[h][i] *= factor;
  }
}

// Scores of the 32 tokens from `first` become weights.
template <typename Tile>
__device__ __forceinline__ void weigh(KiviState<Tile>& state, const PagedAttentionLaunch& launch, const KiviWork& work,
                                      int first, KiviWaveShared<Tile>& shared) {
  float scores[Tile::kHeld];
  bool is_raised = false;
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kHeld; ++i) {
    const int score = (lane_index<Tile::kWave>() + i * Tile::kWave) % Tile::kGroupScores;
    const int token = first + score / Tile::kHeads;
    const float scaled =
        capped(shared.scores[score / Tile::kHeads][score % Tile::kHeads] * launch.score_scale, launch.args.score_cap);
    const float distance = static_cast<float>(token - (work.context - 1));
    const bool is_seen = (token >= work.begin) & (token < work.end) & (lane_index<Tile::kWave>() < Tile::kGroupScores);
    scores[i] = is_seen ? scaled + state.slope * distance : kMaskedScore;
    is_raised |= scores[i] > state.largest + kSlack;
  }
  if (any_lane(is_raised)) raise_largest<Tile>(state, scores);
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kHeld; ++i) {
    const int score = lane_index<Tile::kWave>() + i * Tile::kWave;
    const float weight = fast_exp(scores[i] - state.largest);
    state.weights += weight;
    if (score < Tile::kGroupScores) shared.scores[score / Tile::kHeads][score % Tile::kHeads] = weight;
  }
}

// ---- Values ----

// Of tokens kWaveTokens apart.
template <typename Tile>
__device__ __forceinline__ KiviWords<Tile> load_values(const KvCacheView& cache, const KiviWork& work, int first,
                                                       std::int32_t blocks, int batch) {
  const int lane = lane_index<Tile::kWave>(), token_lane = lane % Tile::kTokenLanes;
  const int unit_of_token = token_lane / Tile::kBits, units_per_token = cache.head_dim / kKiviGroup;
  KiviWords<Tile> values{};
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kBatch; ++i) {
    const int in_group = (batch + i) * Tile::kWaveTokens + lane / Tile::kTokenLanes;
    const bool is_split = cache.block_size < kKiviGroup;
    const std::int32_t block = shuffle<Tile::kWave, Tile::kWave>(blocks, is_split ? in_group / cache.block_size : 0);
    if (unit_of_token >= units_per_token) continue;
    const KiviRecord<Tile::kBits> record(cache.v, cache, block, work.kv_head);
    const int unit = (first + in_group) % cache.block_size * units_per_token + unit_of_token;
    load_word<Tile>(values, i, record, unit, token_lane % Tile::kBits);
  }
  return values;
}

template <typename Tile>
__device__ __forceinline__ void add_quantized(KiviState<Tile>& state, const KiviWords<Tile>& values, int batch,
                                              const KiviWaveShared<Tile>& shared) {
  const int lane = lane_index<Tile::kWave>();
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kBatch; ++i) {
    auto weights = of_heads<Tile>(shared.scores[(batch + i) * Tile::kWaveTokens + lane / Tile::kTokenLanes]);
    const float scale = to_float(values.scales[i]), zero = to_float(values.zeros[i]);
    DCULAB_UNROLL
    for (int h = 0; h < Tile::kHeads; ++h) {
      state.zeros[h] = fused_multiply_add(weights[h], zero, state.zeros[h]);
      weights[h] *= scale;
    }
    DCULAB_UNROLL
    for (int c = 0; c < Tile::kCodes; ++c) {
      const float code = kivi_code<Tile::kBits>(values.codes[i], c / 4, c % 4);
      DCULAB_UNROLL
      for (int h = 0; h < Tile::kHeads; ++h) state.sums[h][c] = fused_multiply_add(weights[h], code, state.sums[h][c]);
    }
  }
}

template <typename Tile>
__device__ __forceinline__ void add_exact(KiviState<Tile>& state, const ExactTokens& tokens, const KiviWork& work,
                                          int head_dim, int first, const KiviWaveShared<Tile>& shared) {
  const int lane = lane_index<Tile::kWave>();
  DCULAB_ROLLED
  for (int batch = 0; batch < Tile::kLoads; batch += Tile::kRows) {
    ExactRow<Tile> rows[Tile::kRows];
    load_rows<Tile>(tokens, KiviTensor::v, work, head_dim, first, batch, rows);
    DCULAB_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      const auto weights = of_heads<Tile>(shared.scores[(batch + r) * Tile::kWaveTokens + lane / Tile::kTokenLanes]);
      DCULAB_UNROLL
      for (int c = 0; c < Tile::kCodes; ++c) {
        DCULAB_UNROLL
        for (int h = 0; h < Tile::kHeads; ++h)
          state.sums[h][c] = fused_multiply_add(weights[h], rows[r].planes[c / 4][c % 4], state.sums[h][c]);
      }
    }
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
