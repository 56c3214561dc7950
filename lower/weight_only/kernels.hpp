// Products of narrow weights that serving programs bring: they widen weights on the way to 16 bits and round no
// activations. Vendors' libraries have none.
//
//   vllm_marlin                int4 and int8 in groups, FP8 where the device multiplies no FP8: vLLM and SGLang on
//                              NVIDIA from compute capability 8.0. At most 4 blocks of 16 rows x 256 columns:
//                              csrc/quantization/gptq_marlin/gptq_marlin.cu of ROCm/vllm@f8c9a3852, where
//                              max_thread_m_blocks is 4, and large_batch_thread_configs
//   vllm_gptq                  ExLlama's, of 2, 3, 4 and 8 bits: csrc/quantization/gptq/q_gemm.cu, since 0.3.3, up to
//                              50 rows, of 8 bits 24. vLLM 0.23 offers 4 and 8 bits
//                              (kernels/linear/mixed_precision/exllama.py); it takes AWQ's weights on gfx906 as well
//                              (ai-infos/vllm-gfx906-mobydick@ff063e44e). No matrix instructions: a workgroup of 128
//                              lanes takes up to 8 rows, 512 columns and 128 values of k, sums pairs of F16 and adds
//                              those up in F32; y gets them by compare-and-swap (compat.cuh). Figures of 4 bits stand
//                              for all. Compiled for gfx906 by hipcc 5.2 at -O2, a lane has 346 vector instructions in
//                              the loop over 32 values of k and 4 columns for one row, 1274 for eight: 1.9 a weight
//                              and 1.1 a weight and row with what stands outside. Its 64 reads of LDS go beside them
//   vllm_gptq_spilling         the same compiled for workgroups of 1024 threads, as DTK's port does with all of vLLM
//                              0.3.3: 75 loads and stores of spilled values in that loop, none below 7 rows. 0.5.0 for
//                              DTK compiles it apart ("fix gptq performance degradation when batch size>4",
//                              smile2game/vllm-dcu@f423ad6)
//   vllm_gptq_widened          more rows: weights are widened into memory, then hipBLAS multiplies and sums in F16
//   sglang_triton_gptq         int4: layers/quantization/gptq_triton.py of HYGON-AI/sglang-das@9ca1b25f7
//   torch_weight_only          int8 by F.linear of widened weights, which Inductor fuses, int4 by
//                              _weight_int4pack_mm: quantize.py of pytorch-labs/gpt-fast@32971d3
//   tensorrt_llm_weight_only   int4 and int8: cpp/tensorrt_llm/kernels/cutlass_kernels/fpA_intB_gemm
//
// Marlin's tile stands for int4 of the others, cuBLAS's for 8 bits: gemm::library_tile.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::weight_only {

extern const MatmulKernel kVllmMarlin;
extern const MatmulKernel kVllmGptq;
extern const MatmulKernel kVllmGptqSpilling;
extern const MatmulKernel kVllmGptqWidened;
extern const MatmulKernel kSglangTritonGptq;
extern const MatmulKernel kTorchWeightOnly;
extern const MatmulKernel kTensorrtLlmWeightOnly;

}  // namespace dculab::lower::weight_only
