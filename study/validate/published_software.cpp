#include "study/validate/published_software.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/letter_case.hpp"
#include "lower/kernel_library.hpp"
#include "study/scenario/stacks.hpp"
#include "study/validate/published_kernel.hpp"

namespace dculab::study {
namespace {

constexpr const char* kOtherKernels = "pytorch";  // of what a library does not do itself

// Designated initialisers, the rest as declared. Programs, then libraries.
// clang-format off
constexpr auto kSoftware = std::to_array<PublishedSoftware>({
    {.begins = "", .engine = "", .stacks = {"pytorch"}},
    {.begins = "vllm", .engine = "vLLM", .stacks = {"vllm-0.5-cuda", "vllm-0.5-rocm", "vllm-dtk", "vllm-0.3.3-dtk"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm (rocm", .engine = "vLLM", .stacks = {"vllm-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.", .engine = "vLLM", .stacks = {"vllm-cuda", "vllm-rocm", "vllm-dtk", "vllm-0.5-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.18.1+das", .engine = "vLLM", .stacks = {"vllm-0.18-dtk"}, .timing = KernelTiming::after_cache_write},
    // DocPang/qwen36-k100ai-w8a8-optimization@145a257, compressed_tensors/triton_scaled_mm.py.
    {.begins = "vllm-das", .engine = "vLLM", .stacks = {"vllm-0.18-dtk"}, .timing = KernelTiming::after_cache_write, .silent = "rocBLAS's products stand for Triton's of W8A8"},
    {.begins = "vllm 0.2.", .engine = "vLLM", .stacks = {"vllm-0.5-cuda", "vllm-0.5-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.3", .engine = "vLLM", .stacks = {"vllm-0.3.3-dtk", "vllm-0.5-cuda", "vllm-0.5-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.4", .engine = "vLLM", .stacks = {"vllm-0.5-cuda", "vllm-0.5-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.6.0", .engine = "vLLM", .stacks = {"vllm-0.5-cuda", "vllm-0.5-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.6.1", .engine = "vLLM", .stacks = {"vllm-0.5-cuda", "vllm-0.5-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.5", .engine = "vLLM", .stacks = {"vllm-0.5-cuda", "vllm-0.5-rocm"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm 0.19.1 gfx906", .engine = "vLLM-Triton", .stacks = {"vllm-triton"}, .timing = KernelTiming::after_cache_write},
    {.begins = "vllm-triton", .engine = "vLLM-Triton", .stacks = {"vllm-triton"}, .timing = KernelTiming::after_cache_write},
    {.begins = "sglang", .engine = "SGLang", .stacks = {"sglang-cuda", "sglang-dtk"}},
    {.begins = "tensorrt-llm", .engine = "TensorRT-LLM", .stacks = {"tensorrt-llm"}},
    {.begins = "llama.cpp", .engine = "llama.cpp", .stacks = {"llama.cpp-cuda", "llama.cpp-hip"}},
    {.begins = "gpt-fast", .engine = "gpt-fast", .stacks = {"gpt-fast"}},
    {.begins = "pytorch", .engine = "PyTorch", .stacks = {"pytorch"}},
    {.begins = "torch", .engine = "PyTorch", .stacks = {"pytorch"}, .layout = KvLayout::contiguous},
    {.begins = "transformerengine", .engine = "TransformerEngine", .stacks = {"pytorch"}},
    {.begins = "vidur", .engine = "vidur", .stacks = {"pytorch"}, .timing = KernelTiming::in_turn},
    {.begins = "triton ua", .engine = "vLLM-Triton", .stacks = {"vllm-triton"}},
    // 0.6.2 on DTK: benchmark/test_fused_marlin_moe_w4a16_int4.py of flagos-ai/FlagGems-vllm@0ddf5cb0.
    {.begins = "vllm bf16 fused_experts", .engine = "vLLM", .kernels = {"", "", "", "", "vllm_fused_experts_by_value"}},
    {.begins = "flaggems fused marlin moe", .engine = "FlagGems", .kernels = {"", "", "", "", "flaggems_fused_experts"}},
    {.begins = "rocblas", .engine = "rocBLAS", .kernels = {"rocblas", "", "", ""}},
    {.begins = "rocblas/tensile hb", .engine = "rocBLAS", .kernels = {"rocblas_half", "", "", ""}, .note = "sums in F16"},
    {.begins = "hipblas", .engine = "hipBLAS", .kernels = {"rocblas", "", "", ""}},
    {.begins = "hipblaslt", .engine = "hipBLASLt", .kernels = {"hipblaslt", "", "", ""}},
    {.begins = "cublas", .engine = "cuBLAS", .kernels = {"cublas", "", "", ""}},
    {.begins = "cutlass", .engine = "CUTLASS", .kernels = {"cublas", "", "", ""}, .note = "with cuBLAS's tiles for CUTLASS's"},
    {.begins = "aiter", .engine = "aiter", .kernels = {"aiter_products", "aiter_flash_attention", "aiter_paged_attention", "vllm_custom_all_reduce"}, .note = "with vLLM's all-reduce for AITER's"},
    {.begins = "aiter pa_fwd_asm", .engine = "aiter assembly"},
    {.begins = "aiter unified attention", .engine = "aiter", .kernels = {"", "triton_unified_attention_2d", "triton_unified_attention_3d", ""}, .note = "with vLLM's unified attention for AITER's"},
    {.begins = "vllm custom all-reduce", .engine = "vLLM", .kernels = {"", "", "", "vllm_custom_all_reduce"}},
    {.begins = "vllm llmm1", .engine = "vLLM", .kernels = {"skinny_gemv", "", "", ""}},
    {.begins = "nccl", .engine = "NCCL", .kernels = {"", "", "", "nccl"}},
    {.begins = "rccl", .engine = "RCCL", .kernels = {"", "", "", "rccl"}},
    // As vLLM 0.18.1 of DTK 26.04 launches them (IceFerryLing/vllm-qwen3.5-bw1000-optimize@11c7f44, README.md).
    {.begins = "triton ua 2d", .engine = "vLLM-Triton", .kernels = {"", "triton_unified_attention_2d", "triton_unified_attention_2d", ""}, .parameters = "block_m=64 tile=16"},
    {.begins = "triton ua 3d", .engine = "vLLM-Triton", .kernels = {"", "", "triton_unified_attention_3d", ""}, .parameters = "block_m=64 tile=16 segments=256"},
    {.begins = "flashattention-2", .engine = "FlashAttention", .kernels = {"", "flash_attention_2", "flash_attention_2", ""}, .layout = KvLayout::contiguous},
    {.begins = "flash-attention 2", .engine = "FlashAttention", .kernels = {"", "flash_attention_2", "flash_attention_2", ""}, .layout = KvLayout::contiguous},
    {.begins = "flashattention-3", .engine = "FlashAttention", .kernels = {"", "flash_attention_3", "flash_attention_3", ""}, .layout = KvLayout::contiguous},
    {.begins = "flash-attention 3", .engine = "FlashAttention", .kernels = {"", "flash_attention_3", "flash_attention_3", ""}, .layout = KvLayout::contiguous},
    {.begins = "flashinfer", .engine = "FlashInfer", .kernels = {"", "flash_attention_2", "flash_attention_2", ""}, .layout = KvLayout::contiguous, .note = "with FlashAttention 2's tiles and splits for FlashInfer's"},
    {.begins = "flash_attn (das)", .engine = "DTK flash_attn", .kernels = {"", "dtk_flash_attention", "dtk_flash_attention", ""}, .layout = KvLayout::contiguous},
    {.begins = "torch sdpa (dtk", .engine = "DTK flash_attn", .kernels = {"", "dtk_flash_attention", "dtk_flash_attention", ""}, .layout = KvLayout::contiguous},
    {.begins = "torch flash attention (dtk", .engine = "DTK flash_attn", .kernels = {"", "dtk_flash_attention", "dtk_flash_attention", ""}, .layout = KvLayout::contiguous},
    {.begins = "flaggems", .engine = "FlagGems", .kernels = {"", "flash_attention_2", "flash_attention_2", ""}, .layout = KvLayout::contiguous, .note = "with FlashAttention 2's tiles and splits for FlagGems'"},
});
// clang-format on

[[nodiscard]] const sim::Stack* stack_of(const PublishedSoftware& row, const sim::Machine& machine,
                                         std::span<const sim::Stack> stacks) {
  for (const std::string_view wanted : row.stacks)
    for (const sim::Stack& stack : stacks)
      if (stack.name == wanted && sim::is_for(stack, machine)) return &stack;
  return nullptr;
}

// The longest row that `fits`. No program named is a row of its own, not how every name begins.
template <class Fits>
[[nodiscard]] const PublishedSoftware* longest_row(const std::string& software, Fits fits) {
  const std::string written = lower_case(software);
  const PublishedSoftware* longest = nullptr;
  for (const PublishedSoftware& row : kSoftware) {
    const bool begins = row.begins.empty() ? written.empty() : written.starts_with(row.begins);
    if (begins && fits(row) && (longest == nullptr || row.begins.size() > longest->begins.size())) longest = &row;
  }
  return longest;
}

template <class Kernel>
[[nodiscard]] std::vector<const Kernel*> kernels_named(std::span<const Kernel* const> all, std::string_view name) {
  std::vector<const Kernel*> found;
  for (const Kernel* kernel : all)
    if (kernel->name == name) found.push_back(kernel);
  return found;
}

// What a calibration keeps it as: no stack file has such a name.
void name_after(const PublishedSoftware& row, sim::Stack& stack) {
  stack.program = row.engine.empty() ? "unnamed" : row.engine;
  stack.name = stack.program + " kernels";
}

// The stack of its file, under a name of its own where the program has another.
[[nodiscard]] sim::Stack renamed(const PublishedSoftware& row, sim::Stack stack) {
  if (row.engine != stack.program) name_after(row, stack);
  return stack;
}

[[nodiscard]] sim::Stack library_stack(const PublishedSoftware& row, sim::Stack stack) {
  name_after(row, stack);
  stack.kernels.matmul = kernels_named(lower::matmul_kernels(), row.kernels.matmul);
  stack.kernels.attention_prefill = kernels_named(lower::attention_kernels(), row.kernels.attention_prefill);
  stack.kernels.attention_decode = kernels_named(lower::attention_kernels(), row.kernels.attention_decode);
  stack.kernels.all_reduce = kernels_named(lower::collective_kernels(), row.kernels.all_reduce);
  stack.kernels.experts = kernels_named(lower::expert_kernels(), row.kernels.experts);
  if (!row.parameters.empty())
    run_kernel(stack, std::string(row.kernels.attention_decode) + ' ' + std::string(row.parameters));
  return stack;
}

}  // namespace

std::span<const PublishedSoftware> published_software() { return kSoftware; }

const PublishedSoftware& find_software(const std::string& software, const sim::Machine& machine,
                                       std::span<const sim::Stack> stacks) {
  const auto fits = [&](const PublishedSoftware& row) {
    return row.is_library() || stack_of(row, machine, stacks) != nullptr;
  };
  if (const PublishedSoftware* row = longest_row(software, fits)) return *row;
  const bool known = longest_row(software, [](const auto&) { return true; }) != nullptr;
  throw InputError(known ? engine_of(software) + " has no stack for " + machine.name
                         : "nothing is known of the kernels of '" + software + "'");
}

std::string engine_of(const std::string& software) {
  const PublishedSoftware* row = longest_row(software, [](const auto&) { return true; });
  return row != nullptr ? std::string(row->engine) : lower_case(software.substr(0, software.find(' ')));
}

sim::Machine as_run_by(const PublishedSoftware& row, sim::Machine machine, std::span<const sim::Stack> stacks) {
  const sim::Stack& stack =
      row.is_library() ? choose_stack(stacks, kOtherKernels, machine) : *stack_of(row, machine, stacks);
  machine.stack = sim::stack_on(machine, row.is_library() ? library_stack(row, stack) : renamed(row, stack));
  return machine;
}

std::vector<sim::Stack> library_stacks(std::span<const sim::Stack> stacks) {
  std::vector<sim::Stack> found;
  for (const PublishedSoftware& row : kSoftware)
    for (const sim::Stack& stack : stacks) {
      const bool runs = row.is_library() ? stack.name == kOtherKernels
                                         : std::ranges::find(row.stacks, stack.name) != row.stacks.end();
      if (!runs || (!row.is_library() && row.engine == stack.program)) continue;
      sim::Stack own = row.is_library() ? library_stack(row, stack) : renamed(row, stack);
      if (std::ranges::find(found, own.name, &sim::Stack::name) == found.end()) found.push_back(std::move(own));
    }
  return found;
}

}  // namespace dculab::study
