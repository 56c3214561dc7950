#include "config/profile/kernel_map.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

using enum KernelRole;

// The names are those of the sources: dculab kernels/gpu; vLLM csrc/{attention,rocm,quantization,layernorm_kernels.cu,
// pos_encoding_kernels.cu,activation_kernels.cu,cache_kernels.cu,moe}, vllm/attention/ops and fused_moe (Triton);
// Triton's own triton_kernels; flash-attention csrc and hopper; FlashInfer include; SGLang sgl-kernel; rocBLAS (Tensile
// names its kernels Cijk_*); cuBLAS and CUTLASS as profilers show them; PyTorch aten and inductor, which names a fused
// kernel after the operations in it.
constexpr std::array kRules{
    // Experts. Before "softmax", "topk" and "gemm".
    KernelRule{"route_tokens", routing, "dculab"},
    KernelRule{"sort_by_expert", routing, "dculab"},
    KernelRule{"combine_experts", combining, "dculab"},
    KernelRule{"topkGating", routing, "vLLM, SGLang"},
    KernelRule{"grouped_topk", routing, "vLLM, SGLang"},
    KernelRule{"moe_align_block_size", routing, "vLLM, SGLang"},
    KernelRule{"count_and_sort_expert_tokens", routing, "vLLM, SGLang"},
    KernelRule{"_topk_forward", routing, "Triton's kernels of experts"},
    KernelRule{"_sum_bitmatrix_rows", routing, "Triton's kernels of experts"},
    KernelRule{"_combined_routing", routing, "Triton's kernels of experts"},
    KernelRule{"_finalize_matmul_scatter", combining, "Triton's kernels of experts"},
    KernelRule{"moe_sum", combining, "vLLM, SGLang"},
    KernelRule{"x1_swiglu", matmul_and_activation, "Triton's kernels of experts (_matmul_ogs_..._16x128x256x1_swiglu)"},
    KernelRule{"_matmul_ogs", matmul, "Triton's kernels of experts"},
    KernelRule{"fused_moe_kernel", matmul, "vLLM, SGLang"},
    // The cache write and the rotation. Before "embedding": rotary_embedding.
    KernelRule{"reshape_and_cache", rope_and_cache, "dculab, vLLM"},
    KernelRule{"concat_and_cache", rope_and_cache, "vLLM"},
    KernelRule{"rotary_embedding", rope_and_cache, "dculab, vLLM"},
    KernelRule{"AppendPagedKVCache", rope_and_cache, "FlashInfer"},
    KernelRule{"ApplyRotary", rope_and_cache, "FlashInfer"},
    KernelRule{"store_kvcache", rope_and_cache, "SGLang"},
    KernelRule{"fused_qk_norm_rope", rope_and_cache, "vLLM"},
    KernelRule{"fused_rope", rope_and_cache, "AITER"},
    // Attention. Before "gemm" and "cutlass": FlashAttention 3 is a cutlass::device_kernel<flash::...>.
    KernelRule{"paged_attention_kernel", decode_attention, "dculab"},
    KernelRule{"paged_attention_combine_kernel", decode_attention, "dculab"},
    KernelRule{"prefill_attention_kernel", prefill_attention, "dculab"},
    KernelRule{"paged_attention_v1", decode_attention, "vLLM"},
    KernelRule{"paged_attention_v2", decode_attention, "vLLM (also its reduce)"},
    KernelRule{"paged_attention_ll4mi", decode_attention, "vLLM ROCm (also its reduce)"},
    KernelRule{"kernel_paged_attention", decode_attention, "vLLM Triton"},
    KernelRule{"kernel_unified_attention", any_attention, "vLLM Triton"},
    KernelRule{"reduce_segments", any_attention, "vLLM Triton"},
    KernelRule{"paged_attn_decode", decode_attention, "AITER"},
    KernelRule{"pa_fwd", decode_attention, "AITER"},
    KernelRule{"BatchDecodeWithPagedKVCache", decode_attention, "FlashInfer"},
    KernelRule{"BatchPrefillWith", any_attention, "FlashInfer (decode too, with tensor cores)"},
    KernelRule{"SinglePrefillWith", prefill_attention, "FlashInfer"},
    KernelRule{"MergeState", any_attention, "FlashInfer"},
    KernelRule{"merge_attn_states", any_attention, "vLLM"},
    KernelRule{"flash_fwd", any_attention, "FlashAttention 2"},
    KernelRule{"FlashAttnFwd", any_attention, "FlashAttention 3"},
    KernelRule{"FmhaFwd", any_attention, "Composable Kernel, AITER"},
    KernelRule{"FmhaBatchPrefill", prefill_attention, "AITER"},
    KernelRule{"fmha", any_attention, "xFormers, TensorRT-LLM"},
    KernelRule{"attn_fwd", any_attention, "FlashAttention Triton"},
    KernelRule{"_fwd_kernel", prefill_attention, "vLLM Triton prefix prefill"},
    // Norms. Inductor's fused norms hold an rsqrt.
    KernelRule{"rms_norm", norm, "dculab, vLLM"},
    KernelRule{"layer_norm", norm, "dculab, vLLM"},
    KernelRule{"RMSNorm", norm, "FlashInfer, AITER"},
    KernelRule{"Rmsnorm", norm, "Composable Kernel, AITER"},
    KernelRule{"rmsnorm", norm, "AITER, SGLang"},
    KernelRule{"rsqrt", norm, "PyTorch inductor"},
    // Activations. Before "elementwise".
    KernelRule{"act_and_mul", activation, "vLLM, FlashInfer"},
    KernelRule{"silu", activation, "dculab, PyTorch"},
    KernelRule{"gelu", activation, "dculab, PyTorch"},
    // Matrix products, with what prepares and ends them.
    KernelRule{"gptq", matmul, "dculab, vLLM"},
    KernelRule{"awq", matmul, "vLLM"},
    KernelRule{"marlin", matmul, "vLLM"},
    KernelRule{"Marlin", matmul, "vLLM"},
    KernelRule{"Cijk_", matmul, "rocBLAS, hipBLASLt"},
    KernelRule{"splitKreduce", matmul, "cuBLAS"},
    KernelRule{"split_k_sum", matmul, "dculab"},
    KernelRule{"quantize_rows", matmul, "dculab"},
    KernelRule{"scaled_int8_quant", matmul, "vLLM"},
    KernelRule{"scaled_fp8_quant", matmul, "vLLM"},
    KernelRule{"wvSplitK", matmul, "vLLM ROCm"},
    KernelRule{"LLGemm1", matmul, "vLLM ROCm"},
    KernelRule{"gemm", matmul, "dculab, cuBLAS, CUTLASS"},
    KernelRule{"Gemm", matmul, "CUTLASS, Composable Kernel"},
    KernelRule{"GEMM", matmul, "CUTLASS"},
    KernelRule{"gemv", matmul, "dculab, cuBLAS"},
    KernelRule{"nvjet", matmul, "cuBLAS"},
    KernelRule{"triton_tem_fused", matmul, "PyTorch inductor"},
    KernelRule{"cutlass", matmul, "CUTLASS"},
    // The embedding.
    KernelRule{"embedding", embedding, "dculab, PyTorch"},
    KernelRule{"indexSelect", embedding, "PyTorch"},
    KernelRule{"vectorized_gather", embedding, "PyTorch"},
    // What no op stands for.
    KernelRule{"softmax", sampling, "PyTorch"},
    KernelRule{"SoftMax", sampling, "PyTorch"},
    KernelRule{"argmax", sampling, "PyTorch"},
    KernelRule{"ArgMax", sampling, "PyTorch"},
    KernelRule{"top_k", sampling, "dculab, vLLM"},
    KernelRule{"topk", sampling, "PyTorch"},
    KernelRule{"TopK", sampling, "FlashInfer"},
    KernelRule{"Sampling", sampling, "FlashInfer"},
    KernelRule{"RadixSort", sampling, "CUB, rocPRIM"},
    KernelRule{"radix_sort", sampling, "rocPRIM"},
    KernelRule{"exponential", sampling, "PyTorch"},
    KernelRule{"emcpy", data_movement, "HIP, CUDA"},
    KernelRule{"emset", data_movement, "HIP, CUDA"},
    KernelRule{"copyBuffer", data_movement, "ROCm"},
    KernelRule{"fillBuffer", data_movement, "ROCm"},
    KernelRule{"copy_blocks", data_movement, "dculab, vLLM"},
    KernelRule{"CatArray", data_movement, "PyTorch"},
    KernelRule{"elementwise", data_movement, "PyTorch"},
    KernelRule{"multi_tensor_apply", data_movement, "PyTorch"},
    KernelRule{"resolve_future_token_ids", data_movement, "SGLang"},
    KernelRule{"clamp_position", data_movement, "SGLang"},
    KernelRule{"kv_indices", data_movement, "SGLang"},
};

}  // namespace

std::span<const KernelRule> kernel_rules() { return kRules; }

std::string_view name(KernelRole role) {
  switch (role) {
    case embedding:
      return "embedding";
    case norm:
      return "norm";
    case matmul:
      return "matmul";
    case matmul_and_activation:
      return "matmul and activation";
    case routing:
      return "routing";
    case combining:
      return "combining";
    case rope_and_cache:
      return "rope_and_cache";
    case prefill_attention:
      return "attention_prefill";
    case decode_attention:
      return "attention_decode";
    case any_attention:
      return "attention";
    case activation:
      return "activation";
    case sampling:
      return "sampling";
    case data_movement:
      return "data movement";
    case unknown:
      return "unknown";
  }
  return "";
}

KernelRole role_of(std::string_view kernel_name, std::span<const NamedKernels> named) {
  const auto fits = [kernel_name](const auto& each) { return kernel_name.find(each.part) != std::string_view::npos; };
  if (const auto given = std::ranges::find_if(named, fits); given != named.end()) return given->role;
  const auto rule = std::ranges::find_if(kRules, fits);
  return rule == kRules.end() ? unknown : rule->role;
}

NamedKernels parse_named_kernels(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string word = equals == std::string::npos ? "" : text.substr(equals + 1);
  std::string known;
  for (int role = 0; role < static_cast<int>(unknown); ++role) {
    if (word == name(static_cast<KernelRole>(role)) && equals > 0)
      return {text.substr(0, equals), static_cast<KernelRole>(role)};
    known.append(known.empty() ? "" : ", ").append(name(static_cast<KernelRole>(role)));
  }
  throw InputError("--kernel-name", in_quotes(text) + " is not PART=OP; OP is one of " + known);
}

bool serves(KernelRole role, OpKind kind) {
  switch (kind) {
    case OpKind::embedding:
      return role == embedding;
    case OpKind::rms_norm:
    case OpKind::layer_norm:
    case OpKind::qk_norm:
      return role == norm;
    case OpKind::matmul:
      return role == matmul || role == matmul_and_activation;
    case OpKind::route_tokens:
      return role == routing;
    case OpKind::combine_experts:
      return role == combining;
    case OpKind::rope_and_cache:
      return role == rope_and_cache;
    case OpKind::shift_sink_keys:  // profiled engines have no such kernels, or none is known
    case OpKind::attention_scores:
    case OpKind::update_block_bounds:
    case OpKind::choose_critical_blocks:
    case OpKind::output_gate:
    case OpKind::causal_conv:
    case OpKind::delta_rule:
    case OpKind::gated_norm:
    case OpKind::compress_kv:
    case OpKind::index_scores:
    case OpKind::choose_entries:
    case OpKind::mix_streams:
    case OpKind::residual_add:
    case OpKind::soft_cap:
    case OpKind::all_reduce:  // profiled engines run on one device
    case OpKind::all_gather:
    case OpKind::dispatch_tokens:
    case OpKind::return_tokens:
      return false;
    case OpKind::attention_prefill:
      return role == prefill_attention || role == any_attention;
    case OpKind::attention_decode:
      return role == decode_attention || role == any_attention;
    case OpKind::activation_mul:
      return role == activation;
  }
  return false;
}

bool is_other(KernelRole role) { return role == sampling || role == data_movement || role == unknown; }

}  // namespace dculab::config
