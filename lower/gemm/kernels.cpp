#include "lower/gemm/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower::gemm {
namespace {

constexpr int kInt4Rows = 4 * 16;  // Marlin's max_thread_m_blocks
constexpr int kColumns = 256;
constexpr int kSkinnyRows = 5;
constexpr int kSmallestSide = 16;  // of a tile
constexpr double kWellFilled = 0.75;
constexpr Bytes kLine(128), kShortLine(64);

[[nodiscard]] int skinny_rows(const Device& /*device*/) { return kSkinnyRows; }

[[nodiscard]] bool runs_on_amd(const Device& device) { return runs_on_gpus(device) && !is_nvidia(device); }

[[nodiscard]] bool runs_on_amd_of_today(const Device& device) {
  return runs_on_amd(device) && device.isa != "gfx906" && device.isa != "gfx926";
}

[[nodiscard]] bool runs_on_cdna2(const Device& device) {
  return device.isa == "gfx90a" || device.isa == "gfx942" || device.isa == "gfx950";
}

[[nodiscard]] bool is_gfx906(const Device& device) { return device.isa == "gfx906"; }

[[nodiscard]] bool has_short_lines(const Device& device) {
  return runs_on_amd(device) && device.isa != "gfx90a" && device.isa != "gfx942" && device.isa != "gfx950";
}

// Share of the units' time in which they have a tile, were all tiles alike.
[[nodiscard]] double filled(const Op& op, const Device& device, const MatmulTile& tile) {
  const std::int64_t rows = (op.m + tile.rows - 1) / tile.rows, columns = (op.n + tile.columns - 1) / tile.columns;
  const auto tiles = static_cast<double>(rows * columns);
  return tiles / (std::ceil(tiles / device.compute_units) * device.compute_units);
}

// On gfx906 sums in F32 are made by mixed multiply-adds at the rate of F32, beyond the grid of tuned sizes by dot
// products of pairs; of bytes there is the generic kernel alone, a multiplication and an addition for each pair.
[[nodiscard]] Multiplied rocblas_multiplied(const Op& op, const Device& device) {
  constexpr std::int64_t kBeyondGrid = 8000;
  const Dtype asked = multiplied_in(op);
  if (!is_gfx906(device)) return {asked};
  if (asked == Dtype::int8) return {Dtype::f32, 2};
  const bool is_mixed = asked == Dtype::f16 && std::min({op.m, op.n, op.k}) < kBeyondGrid;
  return {is_mixed ? Dtype::f32 : asked};
}

constexpr ProductFormat kInt8{.weights = Dtype::int8, .activations = ActivationMode::int8, .has_row_scales = true};
constexpr ProductFormat kFp8{.weights = Dtype::fp8_e4m3, .activations = ActivationMode::fp8, .on = multiplies_fp8};
constexpr ProductFormat kFp8Weights{.weights = Dtype::fp8_e4m3, .on = multiplies_fp8};
constexpr ProductFormat kRocblasFormats[] = {
    {.weights = Dtype::f32}, {.weights = Dtype::f16}, {.weights = Dtype::bf16}, kInt8};
constexpr ProductFormat kHalf[] = {{.weights = Dtype::f16}};
constexpr ProductFormat kWithFp8[] = {
    {.weights = Dtype::f32}, {.weights = Dtype::f16}, {.weights = Dtype::bf16}, kFp8, kFp8Weights, kInt8};
constexpr ProductFormat kFp8OnHopper[] = {
    {.weights = Dtype::fp8_e4m3, .activations = ActivationMode::fp8, .on = is_hopper}};
constexpr ProductFormat kSkinnyFormats[] = {
    {.weights = Dtype::f16, .most_rows = kSkinnyRows},
    {.weights = Dtype::bf16, .most_rows = kSkinnyRows},
    {.weights = Dtype::fp8_e4m3, .activations = ActivationMode::fp8, .most_rows = kSkinnyRows, .on = multiplies_fp8},
    {.weights = Dtype::fp8_e4m3, .most_rows = kSkinnyRows, .on = multiplies_fp8}};

[[nodiscard]] MatmulTile deep_gemm_tile(const Op& op, const Device& /*device*/) {
  return {op.m <= 64 ? 64 : op.m <= 128 ? 128 : 256, 128};
}

}  // namespace

MatmulTile library_tile(const Op& op, const Device& device) {
  const bool is_square = is_hopper(device) || device.isa == "gfx936" || device.isa == "gfx938";
  const int rows = is_square ? 256 : 128;
  return {bits(op.weight_format.dtype) == 4 ? kInt4Rows : rows, is_gfx906(device) ? rows : kColumns};
}

MatmulTile halved_tile(const Op& op, const Device& device, MatmulTile tile, MatmulTile smallest) {
  while (tile.rows > smallest.rows && tile.rows / 2 >= op.m) tile.rows /= 2;
  MatmulTile best = tile;
  while (filled(op, device, best) < kWellFilled && (tile.rows > smallest.rows || tile.columns > smallest.columns)) {
    const bool is_wide = tile.columns >= tile.rows || tile.rows == smallest.rows;
    (is_wide && tile.columns > smallest.columns ? tile.columns : tile.rows) /= 2;
    if (filled(op, device, tile) > filled(op, device, best)) best = tile;
  }
  return best;
}

MatmulTile filling_tile(const Op& op, const Device& device) {
  return halved_tile(op, device, library_tile(op, device), {kSmallestSide, kSmallestSide});
}

Slabs tensile_slabs(const Device& device) {
  return {has_short_lines(device) ? kShortLine : kLine, is_gfx906(device) ? 1 : 2};
}

int tensile_parts(const Op& op, const Device& device) {
  return op.activation_dtype == Dtype::int8 || (is_gfx906(device) && op.activation_dtype == Dtype::f16) ? 1 : 0;
}

int one_row(const Device& /*device*/) { return 1; }

bool multiplies_fp8(const Device& device) {
  const std::string& capability = device.compute_capability;
  return is_nvidia(device) ? capability.size() > 3 || capability >= "8.9"
                           : device.isa == "gfx942" || device.isa == "gfx950" || device.isa == "gfx938";
}

constexpr MatmulKernel kCublas{.name = "cublas",
                               .source = "NVIDIA, Matrix multiplication background, 3; CUTLASS, efficient_gemm.md",
                               .gemv_rows = one_row,
                               .runs_on = is_nvidia,
                               .formats = kWithFp8,
                               .tile = library_tile,
                               .rounding = Rounding::kernel_before};

constexpr MatmulKernel kRocblas{.name = "rocblas",
                                .source = "names of Tensile's kernels in traces; the tile of cuBLAS stands for them",
                                .gemv_rows = one_row,
                                .runs_on = runs_on_amd,
                                .formats = kRocblasFormats,
                                .tile = filling_tile,
                                .parts = tensile_parts,
                                .slabs = tensile_slabs,
                                .multiplied = rocblas_multiplied,
                                .rounding = Rounding::kernel_before};

constexpr MatmulKernel kRocblasHalf{.name = "rocblas_half",
                                    .source = "ROCm/rocBLAS@b520bc8, Tensile/Logic/asm_full, the lists HB",
                                    .gemv_rows = one_row,
                                    .runs_on = runs_on_amd,
                                    .formats = kHalf,
                                    .tile = filling_tile,
                                    .parts = tensile_parts,
                                    .slabs = tensile_slabs};

constexpr MatmulKernel kHipblaslt{.name = "hipblaslt",
                                  .source = "names of Tensile's kernels in traces; the tile of cuBLAS stands for them",
                                  .gemv_rows = one_row,
                                  .runs_on = runs_on_amd_of_today,
                                  .formats = kWithFp8,
                                  .tile = filling_tile,
                                  .slabs = tensile_slabs,
                                  .rounding = Rounding::kernel_before};

constexpr MatmulKernel kDeepGemm{.name = "deep_gemm",
                                 .source = "deepseek-ai/DeepGEMM README.md",
                                 .gemv_rows = one_row,
                                 .runs_on = is_nvidia,
                                 .formats = kFp8OnHopper,
                                 .tile = deep_gemm_tile,
                                 .rounding = Rounding::op_before};

constexpr MatmulKernel kSkinnyGemv{
    .name = "skinny_gemv",
    .source = "vLLM, csrc/rocm/skinny_gemms.cu, wvSplitK; model_executor/layers/utils.py",
    .gemv_rows = skinny_rows,
    .runs_on = runs_on_cdna2,
    .formats = kSkinnyFormats,
    .tile = library_tile,
    .rounding = Rounding::kernel_before};

}  // namespace dculab::lower::gemm
