#include "lower/hygon/kernels.hpp"

#include <algorithm>

#include "lower/flash_attention/kernels.hpp"
#include "lower/vllm/paged_work.hpp"

namespace dculab::lower::hygon {
namespace {

constexpr int kPartition = 512, kShortPartition = 256;
constexpr int kLargeGroup = 8;       // above which partitions are short
constexpr int kFewWorkgroups = 160;  // up to which they are, over partitions, sequences and KV heads
constexpr int kFewWalks = 32;        // sequences x KV heads, with contexts up to kMiddlingContext
constexpr int kMiddlingContext = 32768;
constexpr int kPieceTokens = 64;
constexpr int kPadded = 16;                // rows of an MMAC instruction
constexpr std::int64_t kManyWalks = 1200;  // heads x partitions x sequences from which K and V are reused
constexpr int kMostSplitHeads = 512;       // as vLLM's

constexpr int kPageOf64[] = {64};
constexpr int kPagedHeads[] = {64, 128, 192, 256};
constexpr int kOldBlocks[] = {16};
constexpr int kOldHeads[] = {128};
constexpr Dtype kSixteenBits[] = {Dtype::f16, Dtype::bf16};
constexpr Dtype kAlsoFp8[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};

[[nodiscard]] bool is_mmac(const Device& device) { return device.isa == "gfx936" || device.isa == "gfx938"; }
[[nodiscard]] bool runs_on_gfx928_and_newer(const Device& device) { return device.isa == "gfx928" || is_mmac(device); }
[[nodiscard]] bool runs_on_dcus(const Device& device) { return device.vendor == Vendor::hygon; }

[[nodiscard]] AttentionTile paged_tile(const Op& op, const StepPlan& step, const Device& /*device*/,
                                       const ParameterChoices& /*chosen*/) {
  const Decodes decodes = decodes_of(step.batch);
  const int group = group_size(op.attention);
  const std::int64_t walks = decodes.sequences * op.attention.num_kv_heads;
  const bool is_short = group > kLargeGroup || ceil_divide(decodes.longest, kPartition) * walks <= kFewWorkgroups ||
                        (walks <= kFewWalks && decodes.longest <= kMiddlingContext);
  return {.query_heads = group, .partition_tokens = is_short ? kShortPartition : kPartition, .padded_rows = kPadded};
}

[[nodiscard]] AttentionTile flash_tile(const Op& op, const StepPlan& step, const Device& device,
                                       const ParameterChoices& /*chosen*/) {
  const AttentionWork& work = op.attention;
  if (op.kind == OpKind::attention_prefill || has_several_new_tokens(op)) {
    const double tiles = work.query_tokens / 64 * work.num_query_heads;
    return {.query_tokens = tiles < 4.0 * device.compute_units ? 64 : 128,
            .padded_rows = kPadded,
            .look_up = {.tokens = kPieceTokens, .waits = 2}};
  }
  const Decodes decodes = decodes_of(step.batch);
  const int group = group_size(work);
  const bool is_split = group > 1 && work.head_dim != 256 && work.head_dim != 32;
  const int tokens = flash_attention::split_tokens(decodes.sequences * work.num_kv_heads * ceil_divide(group, 64),
                                                   2 * device.compute_units, decodes.longest, kPieceTokens,
                                                   flash_attention::EmptySplits::avoided);
  return {.query_heads = group,
          .partition_tokens = is_split ? tokens : 0,
          .padded_rows = kPadded,
          .look_up = {.tokens = kPieceTokens, .waits = 2}};
}

[[nodiscard]] AttentionTile reusing_tile(const Op& op, const StepPlan& step, const Device& device,
                                         const ParameterChoices& /*chosen*/) {
  const Decodes decodes = decodes_of(step.batch);
  const AttentionWork& work = op.attention;
  const int group = group_size(work), partitions = ceil_divide(decodes.longest, kPartition);
  const std::int64_t heads = decodes.sequences * work.num_query_heads;
  const bool is_whole = decodes.longest <= 8192 && (partitions == 1 || heads > kMostSplitHeads);
  const bool is_many = heads * (is_whole ? 1 : partitions) >= kManyWalks;
  const int most = !is_many || group < 2 ? 1 : is_whole || group < 4 ? 2 : 4;
  return {.query_heads = most,
          .partition_tokens = is_whole ? 0 : kPartition,
          .look_up = vllm::paged_look_up(device),
          .vector_work = vllm::paged_work_per_token(work, most, device.waves.wave_size)};
}

}  // namespace

constexpr AttentionKernel kPagedAttention{.name = "dtk_paged_attention",
                                          .source = "DTK flash_attn 2.8, flash_fwd_launch_template_pa.h",
                                          .limits = {.block_sizes = kPageOf64,
                                                     .head_dims = kPagedHeads,
                                                     .most_group = 64,
                                                     .kv_dtypes = kAlsoFp8,
                                                     .alibi = Alibi::unknown,
                                                     .only = Phase::decode,
                                                     .most_new_tokens = 1},
                                          .runs_on = runs_on_gfx928_and_newer,
                                          .tile = paged_tile,
                                          .combines_at_a_time = 1};

constexpr AttentionKernel kFlashAttention{.name = "dtk_flash_attention",
                                          .source = "DTK flash_attn 2.8, flash_api.cpp, mha_varlen_fwd",
                                          .limits = {.block_multiple = 16,
                                                     .head_dim_multiple = 8,
                                                     .most_head_dim = 256,
                                                     .kv_dtypes = kSixteenBits,
                                                     .alibi = Alibi::unknown},
                                          .runs_on = runs_on_gfx928_and_newer,
                                          .tile = flash_tile,
                                          .combines_at_a_time = 1};

constexpr AttentionKernel kReusingPagedAttention{
    .name = "dtk_reusing_paged_attention",
    .source = "vLLM 0.5.0 for DTK 24.04.1, csrc/attention/static_switch.h (smile2game/vllm-dcu@ef41f80)",
    .limits = {.block_sizes = kOldBlocks,
               .head_dims = kOldHeads,
               .kv_dtypes = kSixteenBits,
               .only = Phase::decode,
               .most_new_tokens = 1},
    .runs_on = runs_on_dcus,
    .tile = reusing_tile,
    .combines_at_a_time = 1};

}  // namespace dculab::lower::hygon
