// Products of narrow weights that serving programs bring: they widen weights on the way to 16 bits and round no
// activations. Vendors' libraries have none.
//
//   vllm_marlin                int4 and int8 in groups, FP8 where the device multiplies no FP8: vLLM and SGLang on
//                              NVIDIA from compute capability 8.0. At most 4 blocks of 16 rows x 256 columns:
//                              csrc/quantization/gptq_marlin/gptq_marlin.cu of ROCm/vllm@f8c9a3852, where
//                              max_thread_m_blocks is 4, and large_batch_thread_configs
//   vllm_gptq                  ExLlama's, of 2, 3, 4 and 8 bits: csrc/quantization/gptq/q_gemm.cu, since 0.3.3. vLLM
//                              0.23 offers 4 and 8 bits (kernels/linear/mixed_precision/exllama.py); it takes AWQ's
//                              weights on gfx906 as well (ai-infos/vllm-gfx906-mobydick@ff063e44e)
//   sglang_triton_gptq         int4: layers/quantization/gptq_triton.py of HYGON-AI/sglang-das@9ca1b25f7
//   torch_weight_only          int8 by F.linear of widened weights, which Inductor fuses, int4 by
//                              _weight_int4pack_mm: quantize.py of pytorch-labs/gpt-fast@32971d3
//   tensorrt_llm_weight_only   int4 and int8: cpp/tensorrt_llm/kernels/cutlass_kernels/fpA_intB_gemm
//
// Marlin's tile stands for int4 of them all, cuBLAS's for 8 bits: gemm::library_tile.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::weight_only {

extern const MatmulKernel kVllmMarlin;
extern const MatmulKernel kVllmGptq;
extern const MatmulKernel kSglangTritonGptq;
extern const MatmulKernel kTorchWeightOnly;
extern const MatmulKernel kTensorrtLlmWeightOnly;

}  // namespace dculab::lower::weight_only
