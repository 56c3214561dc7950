#include "lower/gemm/kernels.hpp"

namespace dculab::lower::gemm {
namespace {

constexpr int kInt4Rows = 64;
constexpr int kColumns = 256;
constexpr int kSkinnyRows = 5;

[[nodiscard]] int one_row(const Device& /*device*/) { return 1; }
[[nodiscard]] int skinny_rows(const Device& /*device*/) { return kSkinnyRows; }

[[nodiscard]] MatmulTile tile(const Op& op, const Device& device) {
  const int rows = is_hopper(device) ? 256 : 128;
  return {op.weight_format.dtype == Dtype::int4 ? kInt4Rows : rows, kColumns};
}

[[nodiscard]] bool runs_on_amd(const Device& device) { return runs_on_gpus(device) && !is_nvidia(device); }

[[nodiscard]] bool runs_on_cdna2(const Device& device) {
  return device.isa == "gfx90a" || device.isa == "gfx942" || device.isa == "gfx950";
}

}  // namespace

constexpr MatmulKernel kCublas{.name = "cublas",
                               .source = "NVIDIA, Matrix multiplication background, 3; CUTLASS, efficient_gemm.md",
                               .gemv_rows = one_row,
                               .most_rows = 0,
                               .runs_on = is_nvidia,
                               .tile = tile};

constexpr MatmulKernel kRocblas{.name = "rocblas",
                                .source = "names of Tensile's kernels in traces; the tile of cuBLAS stands for them",
                                .gemv_rows = one_row,
                                .most_rows = 0,
                                .runs_on = runs_on_amd,
                                .tile = tile};

constexpr MatmulKernel kHipblaslt{.name = "hipblaslt",
                                  .source = "names of Tensile's kernels in traces; the tile of cuBLAS stands for them",
                                  .gemv_rows = one_row,
                                  .most_rows = 0,
                                  .runs_on = runs_on_amd,
                                  .tile = tile};

constexpr MatmulKernel kSkinnyGemv{
    .name = "skinny_gemv",
    .source = "vLLM, csrc/rocm/skinny_gemms.cu, wvSplitK; model_executor/layers/utils.py",
    .gemv_rows = skinny_rows,
    .most_rows = kSkinnyRows,
    .runs_on = runs_on_cdna2,
    .tile = tile};

}  // namespace dculab::lower::gemm
