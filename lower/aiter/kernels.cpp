#include "lower/aiter/kernels.hpp"

#include "lower/gemm/kernels.hpp"

namespace dculab::lower::aiter {
namespace {

constexpr int kPartition = 256;
constexpr int kPrefillTokens = 256;
constexpr int kTileTokens = 128;  // kN0 of CK's batch prefill
constexpr int kHeads[] = {64, 128};
constexpr Dtype kKvDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::int8};
constexpr Dtype kSixteenBits[] = {Dtype::f16, Dtype::bf16};

[[nodiscard]] bool runs_on_mi300(const Device& device) { return device.isa == "gfx942" || device.isa == "gfx950"; }

constexpr MatmulTile kLargest{128, 128}, kSmallest{16, 64};
constexpr ProductFormat kBytes[] = {
    {.weights = Dtype::fp8_e4m3, .activations = ActivationMode::fp8},
    {.weights = Dtype::fp8_e4m3},
    {.weights = Dtype::int8, .activations = ActivationMode::int8, .has_row_scales = true}};

[[nodiscard]] MatmulTile product_tile(const Op& op, const Device& device) {
  return gemm::halved_tile(op, device, kLargest, kSmallest);
}
[[nodiscard]] int no_rows(const Device& /*device*/) { return 0; }
[[nodiscard]] int whole(const Op& /*op*/, const Device& /*device*/) { return 1; }
// After each 128 of k a wave takes the sums from the matrix cores and adds them, scaled, to those before: two vector
// instructions of 64 lanes a clock, for which its multiplications wait, of 4096 FLOP a clock, on gfx950 of 8192.
[[nodiscard]] Multiplied multiplied(const Op& op, const Device& device) {
  constexpr double kBlock = 128, kLanes = 64, kInstructions = 2;
  const Dtype asked = multiplied_in(op);
  const double flop_per_clock = device.isa == "gfx950" ? 8192 : 4096;
  const double scaling = (kInstructions / kLanes) / (2 * kBlock / flop_per_clock);
  return {asked, asked == Dtype::fp8_e4m3 ? 1 + scaling : 1};
}

[[nodiscard]] Slabs slabs(const Device& /*device*/) { return {Bytes(256)}; }

[[nodiscard]] AttentionTile paged_tile(const Op& op, const StepPlan& /*step*/, const Device& /*device*/,
                                       const ParameterChoices& /*chosen*/) {
  return {.query_heads = group_size(op.attention), .partition_tokens = kPartition, .look_up = {.tokens = kPartition}};
}

[[nodiscard]] AttentionTile flash_tile(const Op& /*op*/, const StepPlan& /*step*/, const Device& /*device*/,
                                       const ParameterChoices& /*chosen*/) {
  return {.query_tokens = kPrefillTokens, .query_heads = 1, .look_up = {.tokens = kTileTokens, .waits = 2}};
}

}  // namespace

constexpr MatmulKernel kProducts{.name = "aiter_products",
                                 .source = "ROCm/aiter@e404860, aiter/configs/model_configs, kernels that were chosen",
                                 .gemv_rows = no_rows,
                                 .runs_on = runs_on_mi300,
                                 .formats = kBytes,
                                 .tile = product_tile,
                                 .parts = whole,
                                 .slabs = slabs,
                                 .multiplied = multiplied,
                                 .rounding = Rounding::kernel_before};

constexpr AttentionKernel kPagedAttention{.name = "aiter_paged_attention",
                                          .source = "ROCm/aiter@e404860, csrc/cpp_itfs/pa, aiter/ops/attention.py",
                                          .limits = {.block_multiple = 16,
                                                     .head_dims = kHeads,
                                                     .most_group = 16,
                                                     .kv_dtypes = kKvDtypes,
                                                     .only = Phase::decode,
                                                     .most_new_tokens = 1},
                                          .runs_on = runs_on_mi300,
                                          .tile = paged_tile};

constexpr AttentionKernel kFlashAttention{
    .name = "aiter_flash_attention",
    .source = "ROCm/aiter@e404860, hsa/gfx942/fmha_v3_fwd/fmha_fwd.csv",
    .limits = {.head_dims = kHeads, .kv_dtypes = kSixteenBits, .alibi = Alibi::no, .only = Phase::prefill},
    .runs_on = runs_on_mi300,
    .tile = flash_tile};

}  // namespace dculab::lower::aiter
