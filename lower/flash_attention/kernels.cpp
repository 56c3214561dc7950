#include "lower/flash_attention/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower::flash_attention {
namespace {

constexpr int kPrefillTokens = 128;
constexpr int kPieceTokens = 128;  // kBlockN of the split kernel at head_dim 128
constexpr int kMostSplits = 128;
constexpr int kPiecesNeverSplit = 4;
constexpr double kNearlyFull = 0.8;
constexpr double kGoodEnough = 0.85;
constexpr int kHopperStages = 4;
constexpr int kPackedRows = 128;  // of (token, head of the group): PackGQA, hopper/heuristics.h

constexpr Dtype kSixteenBits[] = {Dtype::f16, Dtype::bf16};
constexpr Dtype kAlsoFp8[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3};
constexpr AttentionLimits kLimits{
    .block_multiple = 16, .head_dim_multiple = 8, .most_head_dim = 256, .kv_dtypes = kSixteenBits};
constexpr AttentionLimits kHopperLimits{
    .block_multiple = 16, .head_dim_multiple = 8, .most_head_dim = 256, .kv_dtypes = kAlsoFp8, .alibi = Alibi::no};

[[nodiscard]] AttentionTile tile(const Op& op, const StepPlan& step, const Device& device,
                                 const ParameterChoices& /*chosen*/) {
  const bool hopper = is_hopper(device);
  const TableLookUp look_up{.tokens = kPieceTokens, .waits = hopper ? 0.0 : 2.0};
  const bool runs_as_prefill = !hopper && has_several_new_tokens(op);
  if (op.kind == OpKind::attention_prefill || runs_as_prefill)
    return {.query_tokens = kPrefillTokens, .look_up = look_up};
  const Decodes decodes = decodes_of(step.batch);
  return {.query_tokens = std::max(1, kPackedRows / group_size(op.attention)),
          .query_heads = group_size(op.attention),
          .partition_tokens =
              split_tokens(decodes.sequences * op.attention.num_kv_heads, (hopper ? 1 : 2) * device.compute_units,
                           decodes.longest, kPieceTokens, hopper ? EmptySplits::allowed : EmptySplits::avoided),
          .look_up = look_up};
}

}  // namespace

int flash_splits(std::int64_t workgroups, int slots, int pieces, EmptySplits empty) {
  if (static_cast<double>(workgroups) >= kNearlyFull * slots) return 1;
  if (empty == EmptySplits::allowed && pieces <= kPiecesNeverSplit) return 1;
  const int most = std::min({kMostSplits, slots, pieces});
  const auto efficiency = [&](int splits) {
    // As many pieces each as with one split less: the last would be empty.
    const bool last_empty = splits > 1 && ceil_divide(pieces, splits) == ceil_divide(pieces, splits - 1);
    if (last_empty && empty == EmptySplits::avoided) return 0.0;
    const double waves = static_cast<double>(workgroups) * splits / slots;
    return waves / std::ceil(waves);
  };
  double best = 0;
  for (int splits = 1; splits <= most; ++splits) best = std::max(best, efficiency(splits));
  for (int splits = 1; splits <= most; ++splits)
    if (efficiency(splits) >= kGoodEnough * best) return splits;
  return 1;
}

int split_tokens(std::int64_t workgroups, int slots, int longest, int piece_tokens, EmptySplits empty) {
  const int pieces = ceil_divide(longest, piece_tokens);
  const int splits = flash_splits(workgroups, slots, pieces, empty);
  return splits == 1 ? 0 : ceil_divide(pieces, splits) * piece_tokens;
}

constexpr AttentionKernel kFlashAttention2{.name = "flash_attention_2",
                                           .source = "Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp",
                                           .limits = kLimits,
                                           .runs_on = runs_on_gpus,
                                           .tile = tile,
                                           .combines_at_a_time = 1};

constexpr AttentionKernel kFlashAttention3{.name = "flash_attention_3",
                                           .source = "Dao-AILab/flash-attention, hopper/",
                                           .limits = kHopperLimits,
                                           .runs_on = is_hopper,
                                           .tile = tile,
                                           .combines_at_a_time = kHopperStages};

}  // namespace dculab::lower::flash_attention
