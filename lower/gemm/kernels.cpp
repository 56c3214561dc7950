#include "lower/gemm/kernels.hpp"

namespace dculab::lower::gemm {
namespace {

constexpr int kInt4Rows = 4 * 16;  // Marlin's max_thread_m_blocks
constexpr int kColumns = 256;
constexpr int kSkinnyRows = 5;

[[nodiscard]] int skinny_rows(const Device& /*device*/) { return kSkinnyRows; }

[[nodiscard]] bool runs_on_amd(const Device& device) { return runs_on_gpus(device) && !is_nvidia(device); }

[[nodiscard]] bool runs_on_amd_of_today(const Device& device) {
  return runs_on_amd(device) && device.isa != "gfx906" && device.isa != "gfx926";
}

[[nodiscard]] bool runs_on_cdna2(const Device& device) {
  return device.isa == "gfx90a" || device.isa == "gfx942" || device.isa == "gfx950";
}

constexpr ProductFormat kInt8{.weights = Dtype::int8, .activations = ActivationMode::int8, .has_row_scales = true};
constexpr ProductFormat kFp8{.weights = Dtype::fp8_e4m3, .on = multiplies_fp8};
constexpr ProductFormat kRocblasFormats[] = {
    {.weights = Dtype::f32}, {.weights = Dtype::f16}, {.weights = Dtype::bf16}, kInt8};
constexpr ProductFormat kWithFp8[] = {
    {.weights = Dtype::f32}, {.weights = Dtype::f16}, {.weights = Dtype::bf16}, kFp8, kInt8};
constexpr ProductFormat kSkinnyFormats[] = {{.weights = Dtype::f16}, {.weights = Dtype::bf16}, kFp8};

}  // namespace

MatmulTile library_tile(const Op& op, const Device& device) {
  const int rows = is_hopper(device) ? 256 : 128;
  return {op.weight_format.dtype == Dtype::int4 ? kInt4Rows : rows, kColumns};
}

int one_row(const Device& /*device*/) { return 1; }

bool multiplies_fp8(const Device& device) {
  const std::string& capability = device.compute_capability;
  return is_nvidia(device) ? capability.size() > 3 || capability >= "8.9"
                           : device.isa == "gfx942" || device.isa == "gfx950";
}

constexpr MatmulKernel kCublas{.name = "cublas",
                               .source = "NVIDIA, Matrix multiplication background, 3; CUTLASS, efficient_gemm.md",
                               .gemv_rows = one_row,
                               .most_rows = 0,
                               .runs_on = is_nvidia,
                               .formats = kWithFp8,
                               .tile = library_tile};

constexpr MatmulKernel kRocblas{.name = "rocblas",
                                .source = "names of Tensile's kernels in traces; the tile of cuBLAS stands for them",
                                .gemv_rows = one_row,
                                .most_rows = 0,
                                .runs_on = runs_on_amd,
                                .formats = kRocblasFormats,
                                .tile = library_tile};

constexpr MatmulKernel kHipblaslt{.name = "hipblaslt",
                                  .source = "names of Tensile's kernels in traces; the tile of cuBLAS stands for them",
                                  .gemv_rows = one_row,
                                  .most_rows = 0,
                                  .runs_on = runs_on_amd_of_today,
                                  .formats = kWithFp8,
                                  .tile = library_tile};

constexpr MatmulKernel kSkinnyGemv{
    .name = "skinny_gemv",
    .source = "vLLM, csrc/rocm/skinny_gemms.cu, wvSplitK; model_executor/layers/utils.py",
    .gemv_rows = skinny_rows,
    .most_rows = kSkinnyRows,
    .runs_on = runs_on_cdna2,
    .formats = kSkinnyFormats,
    .tile = library_tile};

}  // namespace dculab::lower::gemm
