#include "lower/sglang/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower::sglang {
namespace {

constexpr int kRows = 16;      // BLOCK_H
constexpr int kSmallest = 32;  // _MIN_BLOCK_KV: tokens that splits are rounded to
constexpr Dtype kKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};

// max_kv_splits_2 of get_num_kv_splits_triton: of the longest context, where all are alike.
[[nodiscard]] int splits(std::int64_t programs, const Device& device, int longest) {
  const int most = is_nvidia(device) ? 8 : 16;
  const double wanted = device.compute_units * std::max(1.0, std::log2(longest / 64.0)) /
                        static_cast<double>(std::max<std::int64_t>(1, programs));
  return std::clamp(static_cast<int>(std::ceil(wanted)), 1, most);
}

[[nodiscard]] AttentionTile decode_tile(const Op& op, const StepPlan& step, const Device& device) {
  const AttentionWork& work = op.attention;
  const int heads = std::min(kRows, group_size(work));
  const Decodes decodes = decodes_of(step.batch);
  const int parts = splits(decodes.sequences * ceil_divide(work.num_query_heads, heads), device, decodes.longest);
  const int tokens = ceil_divide(ceil_divide(decodes.longest, parts), kSmallest) * kSmallest;
  return {.query_heads = heads, .partition_tokens = parts == 1 ? 0 : tokens, .padded_rows = kRows};
}

[[nodiscard]] AttentionTile extend_tile(const Op& op, const StepPlan& /*step*/, const Device& device) {
  const bool is_wide = is_nvidia(device) && op.attention.head_dim <= 128;
  return {.query_tokens = is_wide ? 128 : 64, .query_heads = 1, .padded_rows = kRows};
}

}  // namespace

constexpr AttentionKernel kTritonDecode{.name = "sglang_triton_decode",
                                        .source = "SGLang 0.5.12, triton_ops/decode_attention.py",
                                        .limits = {.kv_dtypes = kKvDtypes},
                                        .runs_on = runs_on_gpus,
                                        .tile = decode_tile};

constexpr AttentionKernel kTritonExtend{.name = "sglang_triton_extend",
                                        .source = "SGLang 0.5.12, triton_ops/extend_attention.py",
                                        .limits = {.kv_dtypes = kKvDtypes},
                                        .runs_on = runs_on_gpus,
                                        .tile = extend_tile};

}  // namespace dculab::lower::sglang
