#include "lower/latent_attention/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower::latent_attention {
namespace {

constexpr int kSplits[] = {1, 2, 4, 8, 16, 32};
constexpr KernelParameter kTritonMlaParameters[] = {
    {"num_kv_splits", 4, kSplits, "parts of a context", "num_kv_splits of triton_mla.py"}};
constexpr int kTritonHeads = 16;                            // BLOCK_H
constexpr int kNvidiaTileTokens = 32, kAmdTileTokens = 16;  // BLOCK
constexpr int kFlashRows = 64, kFlashPage = 64;             // BLOCK_M, of query heads; page_block_size
constexpr int kFlashBlocks[] = {kFlashPage};
constexpr Dtype kTritonKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3};
constexpr Dtype kFlashKvDtypes[] = {Dtype::f16, Dtype::bf16};

[[nodiscard]] AttentionTile triton_tile(const Op& op, const StepPlan& step, const Device& device,
                                        const ParameterChoices& chosen) {
  const Decodes decodes = decodes_of(step.batch);
  const int splits = chosen[kTritonMlaParameters[0]];
  return {.query_heads = std::min(kTritonHeads, group_size(op.attention)),
          .partition_tokens = splits == 1 ? 0 : std::max(1, ceil_divide(decodes.longest, splits)),
          .padded_rows = kTritonHeads,
          .look_up = {.tokens = is_nvidia(device) ? kNvidiaTileTokens : kAmdTileTokens},
          .works_in_turn = !is_nvidia(device)};
}

// Every multiprocessor gets as many pages, of one sequence after the other.
[[nodiscard]] AttentionTile flash_tile(const Op& op, const StepPlan& /*step*/, const Device& device,
                                       const ParameterChoices& /*chosen*/) {
  const int groups = ceil_divide(group_size(op.attention), kFlashRows);
  return {.query_tokens = std::max(1, kFlashRows / group_size(op.attention)),
          .query_heads = std::min(kFlashRows, group_size(op.attention)),
          .persistent = std::max(1.0, std::floor(static_cast<double>(device.compute_units) / groups)),
          .padded_rows = kFlashRows,
          .look_up = {.tokens = kFlashPage, .waits = 0}};
}

// One token's heads are the rows of a tile.
[[nodiscard]] AttentionTile sparse_tile(const Op& op, const StepPlan& step, const Device& device,
                                        const ParameterChoices& chosen) {
  AttentionTile tile = flash_tile(op, step, device, chosen);
  tile.query_tokens = 1;
  if (op.kind == OpKind::attention_prefill) tile.persistent = 0;
  return tile;
}

[[nodiscard]] bool runs_on_hopper(const Device& device) { return is_hopper(device); }

[[nodiscard]] bool runs_on_latest_dcus(const Device& device) {
  return runs_on_gpus(device) && (device.isa == "gfx936" || device.isa == "gfx938");
}

}  // namespace

constexpr AttentionKernel kTritonMla{.name = "triton_mla",
                                     .source = "vLLM 0.23, v1/attention/ops/triton_decode_attention.py",
                                     .limits = {.kv_dtypes = kTritonKvDtypes,
                                                .alibi = Alibi::no,
                                                .latents = Latents::only,
                                                .only = Phase::decode,
                                                .most_new_tokens = 1},
                                     .runs_on = runs_on_gpus,
                                     .tile = triton_tile,
                                     .parameters = kTritonMlaParameters};

constexpr AttentionKernel kFlashMla{.name = "flash_mla",
                                    .source = "deepseek-ai/FlashMLA, csrc/get_mla_metadata.cu",
                                    .limits = {.block_sizes = kFlashBlocks,
                                               .kv_dtypes = kFlashKvDtypes,
                                               .alibi = Alibi::no,
                                               .latents = Latents::only,
                                               .only = Phase::decode},
                                    .runs_on = runs_on_hopper,
                                    .tile = flash_tile};

constexpr AttentionKernel kFlashMlaSparse{
    .name = "flash_mla_sparse",
    .source = "deepseek-ai/FlashMLA, csrc/sm90/prefill/sparse",
    .limits = {.kv_dtypes = kTritonKvDtypes, .alibi = Alibi::no, .latents = Latents::entries},
    .runs_on = runs_on_hopper,
    .tile = sparse_tile};

constexpr AttentionKernel kDtkFlashMlaSparse{
    .name = "dtk_flash_mla_sparse",
    .source = "names of kernels in traces; the tiles of flash_mla_sparse stand for them",
    .limits = {.kv_dtypes = kTritonKvDtypes, .alibi = Alibi::no, .latents = Latents::entries},
    .runs_on = runs_on_latest_dcus,
    .tile = sparse_tile};

}  // namespace dculab::lower::latent_attention
