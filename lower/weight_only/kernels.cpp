#include "lower/weight_only/kernels.hpp"

#include "lower/gemm/kernels.hpp"

namespace dculab::lower::weight_only {
namespace {

[[nodiscard]] bool runs_on_ampere_and_newer(const Device& device) {
  return is_nvidia(device) && (device.compute_capability.size() > 3 || device.compute_capability >= "8.0");
}
[[nodiscard]] bool multiplies_no_fp8(const Device& device) { return !gemm::multiplies_fp8(device); }

constexpr ProductFormat kMarlinFormats[] = {
    {.weights = Dtype::int8}, {.weights = Dtype::int4}, {.weights = Dtype::fp8_e4m3, .on = multiplies_no_fp8}};
constexpr ProductFormat kGptqFormats[] = {
    {.weights = Dtype::int8}, {.weights = Dtype::int4}, {.weights = Dtype::int3}, {.weights = Dtype::int2}};
constexpr ProductFormat kInt4[] = {{.weights = Dtype::int4}};
constexpr ProductFormat kIntegers[] = {{.weights = Dtype::int8}, {.weights = Dtype::int4}};

constexpr MatmulKernel product(std::string_view name, std::string_view source, bool (*runs_on)(const Device&),
                               std::span<const ProductFormat> formats) {
  return {.name = name,
          .source = source,
          .gemv_rows = gemm::one_row,
          .most_rows = 0,
          .runs_on = runs_on,
          .formats = formats,
          .tile = gemm::library_tile};
}

}  // namespace

constexpr MatmulKernel kVllmMarlin = product("vllm_marlin", "vLLM, csrc/quantization/gptq_marlin/gptq_marlin.cu",
                                             runs_on_ampere_and_newer, kMarlinFormats);

constexpr MatmulKernel kVllmGptq =
    product("vllm_gptq", "vLLM, csrc/quantization/gptq/q_gemm.cu; the tile of Marlin stands for its own", runs_on_gpus,
            kGptqFormats);

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
