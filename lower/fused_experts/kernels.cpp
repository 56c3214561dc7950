#include "lower/fused_experts/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "lower/gemm/kernels.hpp"

namespace dculab::lower::fused_experts {
namespace {

constexpr int kWarps = 4;              // num_warps
constexpr double kRegisters = 40;      // addresses, masks
constexpr double kPerValue = 1.7;      // lane instructions, Triton 3.9
constexpr double kValueByValue = 8.5;  // the same where each value is loaded on its own
constexpr int kRegistersByValue = 104;
constexpr int kStagesOnNvidia = 4;  // num_stages of the tuned files

constexpr ProductFormat kFormats[] = {
    {.weights = Dtype::f32},
    {.weights = Dtype::f16},
    {.weights = Dtype::bf16},
    {.weights = Dtype::fp8_e4m3},
    {.weights = Dtype::int8},
    {.weights = Dtype::int8, .activations = ActivationMode::int8},
    {.weights = Dtype::fp8_e4m3, .activations = ActivationMode::fp8, .on = gemm::multiplies_fp8}};
constexpr ProductFormat kInt4Weights[] = {{.weights = Dtype::int4}};

[[nodiscard]] bool runs_on_dcus(const Device& device) { return runs_on_gpus(device) && device.vendor == Vendor::hygon; }

struct Cut {
  int rows, columns, depth;  // depth: values of k
  int warps = kWarps;
};

// Slabs are copied into LDS; AMD's code has the next one in registers meanwhile, NVIDIA's more of them in LDS.
[[nodiscard]] ExpertTile tile_of(const Op& op, const Cut& cut, const Device& device) {
  const bool nvidia = is_nvidia(device);
  ExpertTile tile;
  tile.rows = cut.rows;
  tile.columns = cut.columns;
  tile.depth = storage(multiplied_in(op), cut.depth);
  tile.ahead = nvidia ? kStagesOnNvidia - 1 : 1;
  tile.per_value = nvidia ? 0 : kPerValue;
  const Bytes slab = (cut.rows + cut.columns) * tile.depth;
  const double threads = cut.warps * device.waves.wave_size;
  tile.resources.threads = static_cast<int>(threads);
  tile.resources.vgprs = registers(kRegisters + (cut.rows * cut.columns + 2 * slab.value() / 4) / threads);
  tile.resources.lds = tile.ahead * slab;
  return tile;
}

[[nodiscard]] ExpertTile default_tile(const Op& op, std::int64_t tokens, const Device& device) {
  return tile_of(op, tokens <= op.groups.count ? Cut{16, 32, 64} : Cut{64, 64, 32}, device);
}

// By the mean rows of an expert.
[[nodiscard]] ExpertTile tuned_tile(const Op& op, std::int64_t /*tokens*/, const Device& device) {
  const double mean = static_cast<double>(op.m) / op.groups.count;
  if (!is_nvidia(device))
    return tile_of(op,
                   mean <= 12   ? Cut{16, 32, 128, 2}
                   : mean <= 24 ? Cut{32, 32, 128}
                   : mean <= 48 ? Cut{64, 64, 64, 8}
                                : Cut{128, 128, 64, 8},
                   device);
  return tile_of(op,
                 mean <= 8     ? Cut{16, 128, 128}
                 : mean <= 24  ? Cut{32, 128, 128}
                 : mean <= 96  ? Cut{64, 128, 128}
                 : mean <= 192 ? Cut{64, 256, 64}
                               : Cut{128, 256, 64, 8},
                 device);
}

[[nodiscard]] ExpertTile by_value_tile(const Op& op, std::int64_t tokens, const Device& device) {
  ExpertTile tile = default_tile(op, tokens, device);
  tile.per_value = kValueByValue;
  tile.resources.vgprs = kRegistersByValue;
  return tile;
}

// `bm`, `direct` and `split_k` of the source; gate and up are one workgroup's.
[[nodiscard]] ExpertTile widening_tile(const Op& op, std::int64_t /*tokens*/, const Device& device) {
  constexpr std::int64_t kLongSide = 4096, kSplitRows = 32, kDirectRows = 2;
  const std::int64_t inner = op.weight == WeightSlot::expert_up_proj ? op.n / 2 : op.n;
  const bool is_long = std::max(inner, op.k) >= kLongSide, is_direct = op.m <= kDirectRows;
  const std::int64_t experts = op.groups.count;
  const int rows = is_direct || op.m < 16 * experts ? 16 : op.m < 32 * experts ? 32 : 64;
  ExpertTile tile = tile_of(op, {rows, 64, 64}, device);
  tile.per_value = 0;
  tile.per_weight = rows == 16 ? 13.5 : rows == 32 ? 18.8 : 16.3;
  tile.parts = is_long && op.m <= kSplitRows ? 8 : 1;
  tile.loads_before = is_direct ? 1 : 3 + std::log2(static_cast<double>(experts));
  return tile;
}

}  // namespace

constexpr ExpertKernel kTuned{.name = "vllm_fused_experts",
                              .source = "vLLM, fused_moe/fused_moe.py, fused_moe_kernel; fused_moe/configs",
                              .runs_on = runs_on_gpus,
                              .formats = kFormats,
                              .tile = tuned_tile,
                              .sorting_kernels = 3};

constexpr ExpertKernel kDefault{.name = "vllm_fused_experts_default",
                                .source = "the same, get_default_config",
                                .runs_on = runs_on_gpus,
                                .formats = kFormats,
                                .tile = default_tile,
                                .sorting_kernels = 3};

constexpr ExpertKernel kByValue{.name = "vllm_fused_experts_by_value",
                                .source = "vLLM 0.6.2 on DTK (flagos-ai/FlagGems-vllm pull request 797)",
                                .runs_on = runs_on_dcus,
                                .formats = kFormats,
                                .tile = by_value_tile,
                                .sorting_kernels = 5,
                                .sorting_loads_of_expert = 4,
                                .sorts_in_scratchpad_below = 224,
                                .waits = true};

constexpr ExpertKernel kFlagGemsWidening{.name = "flaggems_fused_experts",
                                         .source = "flagos-ai/FlagGems-vllm@7a44b285, fused_marlin_moe.py",
                                         .runs_on = runs_on_dcus,
                                         .formats = kInt4Weights,
                                         .tile = widening_tile,
                                         .sorting_kernels = 3,
                                         .waits = true};

}  // namespace dculab::lower::fused_experts
