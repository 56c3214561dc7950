#include "study/decide/kernel_limits.hpp"

#include <algorithm>
#include <set>

#include "lower/dculab_cpu/geometry.hpp"
#include "lower/device.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string head_dim_problem(const ModelShape& model, const std::set<int>& allowed) {
  return allowed.contains(model.head_dim) ? "" : "no kernel for head_dim " + std::to_string(model.head_dim);
}

[[nodiscard]] KernelLimits own(const ModelShape& model, const sim::Machine& machine) {
  const bool gpu = machine.kind == lower::DeviceKind::gpu;
  KernelLimits limits{.name = "dculab",
                      .block_sizes = {16, 1, 2, 4, 8, 32, 64, 128, 256},
                      .partition_tokens = {lower::dculab_cpu::kPartitionTokens},
                      .kv_dtypes = {Dtype::f16, Dtype::fp8_e4m3},
                      .why_not = {},
                      .source = gpu ? "kernels/gpu" : "kernels/cpu"};
  if (gpu) limits.partition_tokens = {512, 256, 1024, 2048, 0};
  if (gpu) limits.why_not = head_dim_problem(model, {32, 64, 80, 96, 128, 256});
  return limits;
}

[[nodiscard]] KernelLimits vllm_paged(const ModelShape& model) {
  return {.name = "vLLM paged v2",
          .block_sizes = {16, 8, 32},
          .partition_tokens = {512},
          .kv_dtypes = {Dtype::f16, Dtype::fp8_e4m3},
          .query_heads_per_workgroup = 1,
          .why_not = head_dim_problem(model, {32, 64, 80, 96, 112, 120, 128, 192, 256}),
          .source = "vLLM, csrc/attention/paged_attention_v2.cu"};
}

[[nodiscard]] KernelLimits vllm_rocm(const ModelShape& model, const sim::Machine& machine) {
  KernelLimits limits{.name = "vLLM ROCm",
                      .block_sizes = {16, 32},
                      .partition_tokens = {256},
                      .kv_dtypes = {Dtype::f16, Dtype::fp8_e4m3},
                      .why_not = head_dim_problem(model, {64, 128}),
                      .source = "vLLM, csrc/rocm/attention.cu, use_rocm_custom_paged_attention: gfx90a and newer"};
  if (model.group_size() > 16) limits.why_not = "more than 16 query heads a KV head";
  const bool older = machine.kernel_target == "gfx906" || machine.kernel_target == "gfx908";
  if (older || lower::is_nvidia(machine) || machine.waves.wave_size != 64)
    limits.why_not = "for gfx90a, gfx942 and newer";
  return limits;
}

[[nodiscard]] KernelLimits flash_attention(const ModelShape& model, const sim::Machine& machine) {
  KernelLimits limits{.name = "FlashAttention 2",
                      .block_sizes = {256},
                      .partition_tokens = {0},
                      .kv_dtypes = {Dtype::f16},
                      .why_not = {},
                      .source = "csrc/flash_attn/flash_api.cpp; vLLM's fork: multiples of 16"};
  if (model.head_dim > 256) limits.why_not = "head_dim above 256";
  if (!lower::is_nvidia(machine)) limits.why_not = "for NVIDIA; a port may allow other sizes";
  return limits;
}

}  // namespace

std::vector<KernelLimits> kernel_limits(const ModelShape& model, const sim::Machine& machine) {
  std::vector<KernelLimits> all{own(model, machine)};
  if (machine.kind == lower::DeviceKind::cpu) return all;
  all.push_back(vllm_paged(model));
  all.push_back(vllm_rocm(model, machine));
  all.push_back(flash_attention(model, machine));
  return all;
}

std::string sizes_text(std::vector<int> sizes) {
  std::sort(sizes.begin(), sizes.end());
  std::string text;
  for (const int size : sizes) text += (text.empty() ? "" : ", ") + (size == 0 ? "unsplit" : std::to_string(size));
  return text;
}

}  // namespace dculab::study
