// Kernel names as profilers print them, and the op each belongs to.
#include "config/profile/kernel_map.hpp"

#include <set>

#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

TEST_CASE("every kernel of dculab has its role") {
  using enum KernelRole;
  const std::vector<std::pair<std::string_view, KernelRole>> kernels{
      {"paged_attention_kernel", decode_attention},
      {"paged_attention_combine_kernel", decode_attention},
      {"prefill_attention_kernel", prefill_attention},
      {"reshape_and_cache_kernel", rope_and_cache},
      {"copy_blocks_kernel", data_movement},
      {"gemm_kernel", matmul},
      {"gemv_kernel", matmul},
      {"split_k_sum_kernel", matmul},
      {"gptq_gemv_kernel", matmul},
      {"gptq_gemm_kernel", matmul},
      {"int8_gemm_kernel", matmul},
      {"int8_gemv_kernel", matmul},
      {"quantize_rows_kernel", matmul},
      {"rms_norm_kernel", norm},
      {"layer_norm_kernel", norm},
      {"rotary_embedding_kernel", rope_and_cache},
      {"silu_and_mul_kernel", activation},
      {"gelu_kernel", activation},
      {"embedding_kernel", embedding},
      {"softmax_kernel", sampling},
      {"argmax_kernel", sampling},
      {"top_k_kernel", sampling},
      {"route_tokens_kernel", routing},
      {"sort_by_expert_kernel", routing},
      {"expert_gemm_kernel", matmul},
      {"combine_experts_kernel", combining},
  };
  for (const auto& [kernel, role] : kernels) {
    INFO(kernel);
    CHECK(role_of(kernel) == role);
    CHECK(role_of("void dculab::" + std::string(kernel) + "<__half, 64>(Arguments) [clone .kd]") == role);
  }
}

TEST_CASE("kernels of other engines, where one name holds another's") {
  using enum KernelRole;
  const std::vector<std::pair<std::string_view, KernelRole>> kernels{
      {"void vllm::paged_attention_v2_reduce_kernel<unsigned short, 128, 128, 512>(unsigned short*)", decode_attention},
      {"void paged_attention_ll4mi_QKV_mfma16_kernel<_Float16, _Float16, 16>(int)", decode_attention},
      {"_ZN4vllm25paged_attention_v1_kernelIttLi128ELi16ELi128ELNS_18Fp8KVCacheDataTypeE0ELb0EEEvPT_",
       decode_attention},
      {"kernel_paged_attention_2d", decode_attention},
      {"kernel_unified_attention_2d", any_attention},
      {"_fwd_kernel", prefill_attention},
      {"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, cutlass::half_t>>(P)", any_attention},
      {"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<float>>>(Params)", any_attention},
      {"void flashinfer::BatchDecodeWithPagedKVCacheKernel<1, 2>(P)", decode_attention},
      {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(P)", rope_and_cache},
      {"void vllm::rotary_embedding_kernel<c10::Half, true>(long const*)", rope_and_cache},
      {"void vllm::act_and_mul_kernel<c10::Half, &vllm::silu_kernel<c10::Half>, true>(P)", activation},
      {"triton_poi_fused_mul_silu_0", activation},
      {"_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_d", norm},
      {"void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int>(float const*)", routing},
      {"_topk_forward", routing},
      {"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", matmul_and_activation},
      {"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", matmul},
      {"_finalize_matmul_scatter_bf16", combining},
      {"triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_0", norm},
      {"void vllm::gptq::gemm_half_q_half_gptq_4bit_kernel<true, 1>(P)", matmul},
      {"void marlin::Marlin<__half, 256, 1, 8, 8, 4>(P)", matmul},
      {"Cijk_Alik_Bljk_HHS_BH_MT64x32x32_SE_K1", matmul},
      {"ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn", matmul},
      {"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x64_64x3_tn_align8>(P)", matmul},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __half>(P)", matmul},
      {"nvjet_tst_512x8_64x3_2x1_v_bz_TNT", matmul},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::Half>(P)", embedding},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)", data_movement},
      {"[CUDA memcpy Device-to-Host]", data_movement},
      {"__amd_rocclr_fillBufferAligned", data_movement},
      {"my_kernel", unknown},
  };
  for (const auto& [kernel, role] : kernels) {
    INFO(kernel);
    CHECK(role_of(kernel) == role);
  }
}

TEST_CASE("every rule can decide: no earlier one hides it, none stands twice") {
  std::set<std::string_view> parts;
  for (const KernelRule& rule : kernel_rules()) {
    INFO(rule.part);
    CHECK(parts.insert(rule.part).second);
    CHECK(role_of(rule.part) == rule.role);
    CHECK_FALSE(rule.origin.empty());
  }
}

TEST_CASE("a name that the user gives comes before the table") {
  const NamedKernels norms = parse_named_kernels("silu=my=norm");
  CHECK(norms.part == "silu=my");
  CHECK(norms.role == KernelRole::norm);
  CHECK(role_of("a silu=my kernel", std::vector{norms}) == KernelRole::norm);
  CHECK(role_of("a silu kernel", std::vector{norms}) == KernelRole::activation);
  CHECK(parse_named_kernels("x=data movement").role == KernelRole::data_movement);
  for (const char* text : {"my_kernel", "=norm", "my_kernel=unknown", "my_kernel=Norm"})
    CHECK_THROWS_WITH(parse_named_kernels(text), ContainsSubstring("is not PART=OP; OP is one of embedding, norm, "));
}

TEST_CASE("an op is served by its own kind, attention by kernels of both phases too") {
  CHECK(serves(KernelRole::any_attention, OpKind::attention_decode));
  CHECK(serves(KernelRole::any_attention, OpKind::attention_prefill));
  CHECK_FALSE(serves(KernelRole::prefill_attention, OpKind::attention_decode));
  CHECK_FALSE(serves(KernelRole::norm, OpKind::matmul));
  for (const KernelRole role : {KernelRole::sampling, KernelRole::data_movement, KernelRole::unknown}) {
    CHECK(is_other(role));
    for (int kind = 0; kind <= static_cast<int>(OpKind::activation_mul); ++kind)
      CHECK_FALSE(serves(role, static_cast<OpKind>(kind)));
  }
}

}  // namespace
}  // namespace dculab::config
