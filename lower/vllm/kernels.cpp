#include "lower/vllm/kernels.hpp"

#include <algorithm>
#include <bit>

namespace dculab::lower::vllm {
namespace {

constexpr int kPagedPartition = 512;       // _PARTITION_SIZE
constexpr int kPagedMostSplitHeads = 512;  // sequences x heads beyond which v1 walks contexts whole
constexpr int kRocmPartition = 256;        // T_PAR_SIZE
constexpr int kTritonRows = 16;            // BLOCK_M
constexpr int kTritonTile = 16;            // TILE_SIZE of 3D
constexpr int kTritonSegments = 16;        // NUM_PAR_SOFTMAX_SEGMENTS
constexpr int kTritonPrograms = 128;       // MIN_LAUNCH_GRID_SIZE_2D: beyond, 2D fills the device

constexpr int kPagedBlocks[] = {8, 16, 32};
constexpr int kPagedHeads[] = {32, 64, 80, 96, 112, 120, 128, 192, 256};
constexpr int kRocmBlocks[] = {16, 32};
constexpr int kRocmHeads[] = {64, 128};
constexpr Dtype kKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};
constexpr Dtype kRocmKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3};

[[nodiscard]] bool runs_on_mi200_and_newer(const Device& device) {
  return device.isa == "gfx90a" || device.isa == "gfx942" || device.isa == "gfx950";
}

[[nodiscard]] AttentionTile paged_tile(const Op& op, const StepPlan& step, const Device& /*device*/) {
  const bool splits = decodes_of(step.batch).sequences * op.attention.num_query_heads <= kPagedMostSplitHeads;
  return {.query_heads = 1, .partition_tokens = splits ? kPagedPartition : 0};
}

[[nodiscard]] AttentionTile rocm_tile(const Op& op, const StepPlan& /*step*/, const Device& /*device*/) {
  return {.query_heads = group_size(op.attention), .partition_tokens = kRocmPartition};
}

[[nodiscard]] int rows_of(int group) {
  return std::max(kTritonRows, static_cast<int>(std::bit_ceil(static_cast<unsigned>(group))));
}

[[nodiscard]] AttentionTile unified_2d_tile(const Op& op, const StepPlan& /*step*/, const Device& /*device*/) {
  const int group = group_size(op.attention);
  return {.query_tokens = std::max(1, rows_of(group) / group), .query_heads = group, .padded_rows = rows_of(group)};
}

[[nodiscard]] AttentionTile unified_3d_tile(const Op& op, const StepPlan& step, const Device& device) {
  AttentionTile tile = unified_2d_tile(op, step, device);
  const Decodes decodes = decodes_of(step.batch);
  const bool is_mixed = decodes.sequences < static_cast<std::int64_t>(step.batch.sequences.size());
  if (is_mixed || decodes.sequences * op.attention.num_kv_heads > kTritonPrograms) return tile;
  tile.partition_tokens = kTritonTile * ceil_divide(decodes.longest, kTritonSegments * kTritonTile);
  return tile;
}

}  // namespace

constexpr AttentionKernel kPagedAttention{
    .name = "vllm_paged_attention",
    .source = "vLLM, csrc/attention/paged_attention_v2.cu",
    .limits = {.block_sizes = kPagedBlocks, .head_dims = kPagedHeads, .kv_dtypes = kKvDtypes},
    .runs_on = runs_on_gpus,
    .tile = paged_tile,
    .combines_at_a_time = 1};

constexpr AttentionKernel kRocmPagedAttention{
    .name = "vllm_rocm_paged_attention",
    .source = "vLLM, csrc/rocm/attention.cu; platforms/rocm.py, use_rocm_custom_paged_attention",
    .limits = {.block_sizes = kRocmBlocks, .head_dims = kRocmHeads, .most_group = 16, .kv_dtypes = kRocmKvDtypes},
    .runs_on = runs_on_mi200_and_newer,
    .tile = rocm_tile};

constexpr AttentionKernel kTritonUnified3d{.name = "triton_unified_attention_3d",
                                           .source = "vLLM 0.23, v1/attention/ops/triton_unified_attention.py",
                                           .limits = {.block_multiple = 16, .kv_dtypes = kKvDtypes},
                                           .runs_on = runs_on_gpus,
                                           .tile = unified_3d_tile};

constexpr AttentionKernel kTritonUnified2d{.name = "triton_unified_attention_2d",
                                           .source = "vLLM 0.23, v1/attention/ops/triton_unified_attention.py",
                                           .limits = {.block_multiple = 16, .kv_dtypes = kKvDtypes},
                                           .runs_on = runs_on_gpus,
                                           .tile = unified_2d_tile};

}  // namespace dculab::lower::vllm
