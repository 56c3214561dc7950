#include "lower/sglang/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "lower/gemm/kernels.hpp"

namespace dculab::lower::sglang {
namespace {

constexpr int kRows[] = {16, 32, 64};
constexpr int kPieces[] = {16, 32, 64, 128};

constexpr KernelParameter kDecodeParameters[] = {
    {"block_h", 16, kRows, "query heads", "BLOCK_H of decode_attention.py"},
    {"min_block_kv", 32, kPieces, "tokens", "_MIN_BLOCK_KV of decode_attention.py, which splits are rounded to"}};

constexpr int kPaddedRows = 16;
constexpr int kDecodeTokens = 32, kExtendTokens = 64;  // of a tile, BLOCK_N
constexpr Dtype kKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};

// max_kv_splits_2 of get_num_kv_splits_triton: of the longest context, where all are alike.
[[nodiscard]] int splits(std::int64_t programs, const Device& device, int longest) {
  const int most = is_nvidia(device) ? 8 : 16;
  const double wanted = device.compute_units * std::max(1.0, std::log2(longest / 64.0)) /
                        static_cast<double>(std::max<std::int64_t>(1, programs));
  return std::clamp(static_cast<int>(std::ceil(wanted)), 1, most);
}

[[nodiscard]] AttentionTile decode_tile(const Op& op, const StepPlan& step, const Device& device,
                                        const ParameterChoices& chosen) {
  const auto& [block_h, min_block_kv] = kDecodeParameters;
  const AttentionWork& work = op.attention;
  const int heads = std::min(chosen[block_h], group_size(work)), piece = chosen[min_block_kv];
  const Decodes decodes = decodes_of(step.batch);
  const int parts = splits(decodes.sequences * ceil_divide(work.num_query_heads, heads), device, decodes.longest);
  const int tokens = ceil_divide(ceil_divide(decodes.longest, parts), piece) * piece;
  return {.query_heads = heads,
          .partition_tokens = parts == 1 ? 0 : tokens,
          .padded_rows = chosen[block_h],
          .look_up = {.tokens = kDecodeTokens}};
}

[[nodiscard]] AttentionTile extend_tile(const Op& op, const StepPlan& /*step*/, const Device& device,
                                        const ParameterChoices& /*chosen*/) {
  const bool is_wide = is_nvidia(device) && op.attention.head_dim <= 128;
  return {.query_tokens = is_wide ? 128 : 64,
          .query_heads = 1,
          .padded_rows = kPaddedRows,
          .look_up = {.tokens = kExtendTokens}};
}

constexpr ProductFormat kFp8[] = {{.weights = Dtype::fp8_e4m3, .activations = ActivationMode::fp8}};
constexpr int kTritonRows = 64, kCutlassRows = 128, kBlockColumns = 128;
constexpr Bytes kBlock(128);  // of a row of FP8
constexpr int kStages = 3;

[[nodiscard]] bool multiplies_blocks(const Device& device) { return is_nvidia(device) && gemm::multiplies_fp8(device); }

[[nodiscard]] bool is_gfx938(const Device& device) { return runs_on_gpus(device) && device.isa == "gfx938"; }

[[nodiscard]] int no_rows(const Device& /*device*/) { return 0; }

[[nodiscard]] MatmulTile block_tile(const Op& op, const Device& /*device*/) {
  return {op.m <= kTritonRows ? kTritonRows : kCutlassRows, kBlockColumns};
}

[[nodiscard]] int whole(const Op& /*op*/, const Device& /*device*/) { return 1; }

[[nodiscard]] Slabs blocks(const Device& /*device*/) { return {kBlock, kStages - 1}; }

}  // namespace

constexpr AttentionKernel kTritonDecode{.name = "sglang_triton_decode",
                                        .source = "SGLang 0.5.12, triton_ops/decode_attention.py",
                                        .limits = {.kv_dtypes = kKvDtypes,
                                                   .alibi = Alibi::no,
                                                   .latents = Latents::takes,
                                                   .only = Phase::decode,
                                                   .most_new_tokens = 1},
                                        .runs_on = runs_on_gpus,
                                        .tile = decode_tile,
                                        .parameters = kDecodeParameters};

constexpr AttentionKernel kTritonExtend{.name = "sglang_triton_extend",
                                        .source = "SGLang 0.5.12, triton_ops/extend_attention.py",
                                        .limits = {.kv_dtypes = kKvDtypes, .alibi = Alibi::no, .only = Phase::prefill},
                                        .runs_on = runs_on_gpus,
                                        .tile = extend_tile};

constexpr MatmulKernel kBlockFp8{.name = "sglang_block_fp8",
                                 .source = "SGLang 0.5.12, layers/quantization/fp8_kernel.py",
                                 .gemv_rows = no_rows,
                                 .runs_on = multiplies_blocks,
                                 .formats = kFp8,
                                 .tile = block_tile,
                                 .parts = whole,
                                 .slabs = blocks,
                                 .rounding = Rounding::kernel_before};

constexpr MatmulKernel kChannelFp8{.name = "sglang_channel_fp8",
                                   .source = "SGLang on DTK: hipBLASLt, whose tiles stand for its kernels",
                                   .gemv_rows = gemm::one_row,
                                   .runs_on = is_gfx938,
                                   .formats = kFp8,
                                   .tile = gemm::filling_tile,
                                   .slabs = gemm::tensile_slabs,
                                   .rounding = Rounding::kernel_before};

}  // namespace dculab::lower::sglang
