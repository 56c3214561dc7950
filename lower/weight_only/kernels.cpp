#include "lower/weight_only/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "lower/gemm/kernels.hpp"

namespace dculab::lower::weight_only {
namespace {

[[nodiscard]] bool runs_on_ampere_and_newer(const Device& device) {
  return is_nvidia(device) && (device.compute_capability.size() > 3 || device.compute_capability >= "8.0");
}
[[nodiscard]] bool multiplies_no_fp8(const Device& device) { return !gemm::multiplies_fp8(device); }

// MXFP4 since vLLM 0.10.1: the stacks of older ones list what they take.
constexpr ProductFormat kMarlinFormats[] = {{.weights = Dtype::int8},
                                            {.weights = Dtype::int4},
                                            {.weights = Dtype::mxfp4},
                                            {.weights = Dtype::fp8_e4m3, .on = multiplies_no_fp8}};
constexpr ProductFormat kGptqFormats[] = {
    {.weights = Dtype::int8}, {.weights = Dtype::int4}, {.weights = Dtype::int3}, {.weights = Dtype::int2}};
constexpr int kGptqRows = 50, kGptqRowsOf8Bits = 24;  // MAX_Q_GEMM_ROWS, MAX_Q_GEMM_ROWS_8BIT
constexpr ProductFormat kFewRows[] = {{.weights = Dtype::int8, .most_rows = kGptqRowsOf8Bits},
                                      {.weights = Dtype::int4, .most_rows = kGptqRows},
                                      {.weights = Dtype::int3, .most_rows = kGptqRows},
                                      {.weights = Dtype::int2, .most_rows = kGptqRows}};
constexpr ProductFormat kInt4[] = {{.weights = Dtype::int4}};
constexpr ProductFormat kIntegers[] = {{.weights = Dtype::int8}, {.weights = Dtype::int4}};

constexpr MatmulKernel product(std::string_view name, std::string_view source, bool (*runs_on)(const Device&),
                               std::span<const ProductFormat> formats) {
  return {.name = name,
          .source = source,
          .gemv_rows = gemm::one_row,
          .runs_on = runs_on,
          .formats = formats,
          .tile = gemm::library_tile};
}

constexpr int kGptqThreads = 128, kGptqDepth = 128;  // BLOCK_KN_SIZE
constexpr int kGptqBlock = 8;                        // rows, BLOCK_M_SIZE_MAX
constexpr int kColumnsOfLane = 4;

// As hipcc 5.2 compiles it for gfx906: vector instructions of a lane over the 512 weights that it widens.
constexpr double kWidening = 1.9, kMultiplying = 1.1;
constexpr int kGptqRegisters = 73;
// Where a workgroup may have 1024 threads, which leaves 64 registers on gfx906: loads and stores of a lane over a
// slice, of 25 values that it has no registers for.
constexpr double kSpilledVisits = 300, kSpilledValues = 25;

[[nodiscard]] int no_rows(const Device& /*device*/) { return 0; }

[[nodiscard]] MatmulTile gptq_tile(const Op& /*op*/, const Device& /*device*/) {
  return {kGptqBlock, kGptqThreads * kColumnsOfLane};
}

[[nodiscard]] Slices gptq_slices(const Op& /*op*/, const Device& /*device*/) {
  return {.depth = kGptqDepth,
          .per_weight = kWidening,
          .per_product = kMultiplying,
          .resources = {
              .threads = kGptqThreads, .vgprs = kGptqRegisters, .lds = storage(Dtype::f16, kGptqBlock * kGptqDepth)}};
}

[[nodiscard]] int registers_for_1024(const WaveResources& waves) {
  return std::min(256, waves.vgprs_per_lane * waves.simds_per_unit * waves.wave_size / 1024);
}

// Workgroups of 8 rows, not those of the rows that are left.
[[nodiscard]] Slices spilling_slices(const Op& op, const Device& device) {
  Slices slices = gptq_slices(op, device);
  const int registers = registers_for_1024(device.waves);
  if (registers >= slices.resources.vgprs) return slices;
  const double blocks = std::ceil(static_cast<double>(op.m) / kGptqBlock);
  const double full = std::floor(static_cast<double>(op.m) / kGptqBlock) / blocks;
  const Bytes visited = storage(Dtype::f32, kSpilledVisits * kGptqThreads);
  const Bytes weights = storage(op.weight_format.dtype, kGptqDepth * kColumnsOfLane * kGptqThreads);
  slices.resources.vgprs = registers;
  slices.spills = {full * visited, (visited + weights) * (kSpilledValues / kSpilledVisits)};
  return slices;
}

// Of the library that multiplies what was widened.
[[nodiscard]] MatmulTile widened_tile(const Op& op, const Device& device) {
  Op widened = op;
  widened.weight_format.dtype = Dtype::f16;
  return gemm::filling_tile(widened, device);
}

}  // namespace

constexpr MatmulKernel kVllmMarlin = product("vllm_marlin", "vLLM, csrc/quantization/gptq_marlin/gptq_marlin.cu",
                                             runs_on_ampere_and_newer, kMarlinFormats);

constexpr MatmulKernel kVllmGptq{.name = "vllm_gptq",
                                 .source = "vLLM, csrc/quantization/gptq/q_gemm.cu",
                                 .gemv_rows = no_rows,
                                 .runs_on = runs_on_gpus,
                                 .formats = kFewRows,
                                 .tile = gptq_tile,
                                 .slices = gptq_slices};

constexpr MatmulKernel kVllmGptqSpilling{
    .name = "vllm_gptq_spilling",
    .source = "the same with --gpu-max-threads-per-block=1024: setup.py of smile2game/vllm-dcu@3f1166a",
    .gemv_rows = no_rows,
    .runs_on = runs_on_gpus,
    .formats = kFewRows,
    .tile = gptq_tile,
    .slices = spilling_slices};

constexpr MatmulKernel kVllmGptqWidened{.name = "vllm_gptq_widened",
                                        .source = "vLLM, csrc/quantization/gptq/q_gemm.cu, reconstruct; hipblasHgemm",
                                        .gemv_rows = no_rows,
                                        .runs_on = runs_on_gpus,
                                        .formats = kGptqFormats,
                                        .tile = widened_tile,
                                        .parts = gemm::tensile_parts,
                                        .slabs = gemm::tensile_slabs,
                                        .widening = kWidening};

constexpr MatmulKernel kSglangTritonGptq =
    product("sglang_triton_gptq",
            "HYGON-AI/sglang-das@9ca1b25f7, quantization/gptq_triton.py; the tile of Marlin stands for its own",
            runs_on_gpus, kInt4);

constexpr MatmulKernel kTorchWeightOnly =
    product("torch_weight_only", "gpt-fast, quantize.py; the tiles of Marlin and cuBLAS stand for its own",
            runs_on_gpus, kIntegers);

constexpr MatmulKernel kTensorrtLlmWeightOnly =
    product("tensorrt_llm_weight_only",
            "TensorRT-LLM, cutlass_kernels/fpA_intB_gemm; the tiles of Marlin and cuBLAS stand for its own", is_nvidia,
            kIntegers);

}  // namespace dculab::lower::weight_only
