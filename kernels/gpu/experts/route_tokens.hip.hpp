// From the logits of a router to each token's experts and their weights: a wave for each token.
#pragma once

#include "kernels/gpu/expert_args.hpp"
#include "kernels/gpu/layers/rank.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Values of a token's experts: lane l of the wave has those of experts l, l + kWave, ...
template <int kWave>
struct OfExperts {
  static constexpr int kOwn = kMostExperts / kWave;
  float values[kOwn];

  __device__ __forceinline__ static int expert(int i) { return i * kWave + lane_index<kWave>(); }
};

inline constexpr float kLeast = -3.402823466e+38F;

template <int kWave>
__device__ __forceinline__ OfExperts<kWave> load_logits(const RouteTokens& args, int token) {
  OfExperts<kWave> logits;
  const std::int64_t row = static_cast<std::int64_t>(token) * args.rule.num_experts;
  DCULAB_UNROLL
  for (int i = 0; i < logits.kOwn; ++i) {
    const int expert = logits.expert(i);
    logits.values[i] =
        expert < args.rule.num_experts ? load_number(args.logits.data, args.logits.dtype, row + expert) : kLeast;
  }
  return logits;
}

// Of the scores that are there: softmax or sigmoid of the logits.
template <int kWave>
__device__ __forceinline__ OfExperts<kWave> score(const RouterRule& rule, const OfExperts<kWave>& logits) {
  OfExperts<kWave> scores;
  const bool is_softmax = rule.scoring == RouterScoring::softmax;
  float largest = kLeast, sum = 0;
  DCULAB_UNROLL
  for (int i = 0; i < scores.kOwn; ++i) largest = larger(largest, logits.values[i]);
  largest = wave_max<kWave>(largest);
  DCULAB_UNROLL
  for (int i = 0; i < scores.kOwn; ++i) {
    scores.values[i] = fast_exp(is_softmax ? logits.values[i] - largest : -logits.values[i]);
    if (scores.expert(i) < rule.num_experts) sum += scores.values[i];
  }
  const float factor = 1.0F / wave_sum<kWave>(sum);
  DCULAB_UNROLL
  for (int i = 0; i < scores.kOwn; ++i)
    scores.values[i] = is_softmax ? scores.values[i] * factor : 1.0F / (1.0F + scores.values[i]);
  return scores;
}

// How good lane g's group is: as its best expert, with a correction bias as the sum of its best two.
template <int kWave>
__device__ __forceinline__ float group_score(const RouteTokens& args, const float* keys) {
  float best = kLeast, second = kLeast;
  const int size = args.rule.group_size(), group = lane_index<kWave>();
  for (int i = 0; group < args.rule.num_groups && i < size; ++i) {
    const float key = keys[group * size + i];
    second = larger(second, key < best ? key : best);
    best = larger(best, key);
  }
  return args.correction_bias != nullptr && size > 1 ? best + second : best;
}

// Whether lane g's group is one of the token's: of equal ones the lower index is better.
template <int kWave>
__device__ __forceinline__ bool is_chosen_group(const RouterRule& rule, float own) {
  const int group = lane_index<kWave>();
  int better = 0;
  for (int other = 0; other < rule.num_groups; ++other) {
    const float score = shuffle<kWave, kWave>(own, other);
    better += score > own || (score == own && other < group) ? 1 : 0;
  }
  return group < rule.num_groups && better < rule.groups_per_token;
}

// In what order experts are chosen: 0 for those that are not there, or not of the token's groups. Without a correction
// bias the logits decide, whose order is that of the scores.
template <int kWave>
__device__ __forceinline__ void rank_experts(const RouteTokens& args, const OfExperts<kWave>& logits,
                                             const OfExperts<kWave>& scores, float* keys,
                                             Rank (&ranks)[OfExperts<kWave>::kOwn]) {
  constexpr int kOwn = OfExperts<kWave>::kOwn;
  const int num_experts = args.rule.num_experts;
  DCULAB_UNROLL
  for (int i = 0; i < kOwn; ++i) {
    const int expert = scores.expert(i);
    ranks[i] = 0;
    if (expert >= num_experts) continue;
    const float key =
        args.correction_bias == nullptr ? logits.values[i] : scores.values[i] + load(args.correction_bias + expert);
    keys[expert] = key;
    ranks[i] = rank_of(key, expert);
  }
  if (args.rule.num_groups == 1) return;
  wave_barrier();
  const std::uint32_t own = is_chosen_group<kWave>(args.rule, group_score<kWave>(args, keys)) ? 1 : 0;
  DCULAB_UNROLL
  for (int i = 0; i < kOwn; ++i)
    if (shuffle<kWave, kWave>(own, scores.expert(i) / args.rule.group_size()) == 0) ranks[i] = 0;
}

// What lane i < experts_per_token keeps of the i-th choice.
struct Choice {
  int expert = 0;
  float weight = 0;
};

template <int kWave>
__device__ __forceinline__ Choice choose_experts(const RouterRule& rule, const OfExperts<kWave>& scores,
                                                 Rank (&ranks)[OfExperts<kWave>::kOwn]) {
  Choice own;
  for (int choice = 0; choice < rule.experts_per_token; ++choice) {
    Rank highest = 0;
    DCULAB_UNROLL
    for (int i = 0; i < scores.kOwn; ++i) highest = higher(highest, ranks[i]);
    highest = wave_highest<kWave>(highest);
    float weight = 0;  // of the lane that has the expert
    DCULAB_UNROLL
    for (int i = 0; i < scores.kOwn; ++i) {
      if (ranks[i] != highest) continue;
      weight = scores.values[i];
      ranks[i] = 0;
    }
    const int expert = index_of(highest);
    weight = shuffle<kWave, kWave>(weight, expert % kWave);
    if (choice == lane_index<kWave>()) own = {expert, weight};
  }
  return own;
}

template <int kWave>
struct RouteShared {
  float keys[kRouteThreads / kWave][kMostExperts];
};

// Added to the sum that weights are divided by, as DeepSeek-V3 does, against a sum of zeros. In f32 no other sum
// changes.
inline constexpr float kNoWeight = 1e-20F;

// Workgroups: num_tokens / (their waves), rounded up.
template <int kWave>
__global__ void __launch_bounds__(kRouteThreads) route_tokens_kernel(RouteTokens args) {
  DCULAB_SHARED(RouteShared<kWave>, shared);
  const int token = workgroup_x() * (kRouteThreads / kWave) + wave_index<kWave>();
  if (token >= args.num_tokens) return;
  const OfExperts<kWave> logits = load_logits<kWave>(args, token);
  bool is_bad = false;
  DCULAB_UNROLL
  for (int i = 0; i < logits.kOwn; ++i) is_bad |= !(logits.values[i] - logits.values[i] == 0);  // NaN and infinity
  const bool any_bad = any_lane(is_bad);
  const OfExperts<kWave> scores = score<kWave>(args.rule, logits);
  Rank ranks[OfExperts<kWave>::kOwn];
  rank_experts<kWave>(args, logits, scores, shared.keys[wave_index<kWave>()], ranks);
  const Choice choice = choose_experts<kWave>(args.rule, scores, ranks);
  const float sum = wave_sum<kWave>(choice.weight);
  const float weight = args.rule.scaling * (args.rule.normalized ? choice.weight / (sum + kNoWeight) : choice.weight);
  const int lane = lane_index<kWave>();
  if (lane == 0) store(args.is_bad + token, std::int32_t{any_bad ? 1 : 0});
  if (lane >= args.rule.experts_per_token) return;
  const std::int64_t place = static_cast<std::int64_t>(token) * args.rule.experts_per_token + lane;
  store(args.choices.experts + place, static_cast<std::int32_t>(choice.expert));
  store(args.choices.weights + place, weight);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
