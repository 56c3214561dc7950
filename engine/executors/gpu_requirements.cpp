#include "engine/executors/gpu_requirements.hpp"

#include <string>

#include "core/error.hpp"
#include "lower/dculab_gpu/expert_plan.hpp"

namespace dculab::engine {
namespace {

// int4 is widened, int8 multiplied as integers: there is one kernel for each.
void require_product_kernel(Dtype weights, ActivationMode activations) {
  if (weights == Dtype::fp8_e4m3)
    throw InputError("FP8 weights are not supported on the GPU; use the CPU, or the BF16 checkpoint");
  if (activations == ActivationMode::bf16)
    throw InputError("activations rounded to BF16 are not supported on the GPU; use --activations exact");
  if (weights == Dtype::int4 && activations == ActivationMode::int8)
    throw InputError("int4 weights with 8-bit activations are not supported on the GPU; use --activations exact");
  if (weights == Dtype::int8 && activations == ActivationMode::exact)
    throw InputError("int8 weights with exact activations are not supported on the GPU; use --activations int8");
}

void require_at_most(int count, int most, const std::string& what) {
  if (count > most)
    throw InputError(std::to_string(count) + " " + what + " are not supported on the GPU; there are kernels for " +
                     std::to_string(most) + " at most");
}

void require_expert_kernels(const Experts& experts, Dtype weights) {
  require_at_most(experts.num_experts, lower::dculab_gpu::kMostExperts, "experts");
  require_at_most(experts.num_experts_per_tok, lower::dculab_gpu::kMostExpertsPerToken, "experts of a token");
  require_at_most(experts.num_groups, lower::dculab_gpu::kMostExpertGroups, "groups of experts");
  if (weights == Dtype::int8)
    throw InputError("int8 weights of experts are not supported on the GPU; use int4 or --device cpu");
}

}  // namespace

void require_gpu_attention(const ModelShape& shape) {
  for (const LayerKind& kind : shape.kinds) {
    if (kind.mla() != nullptr)
      throw InputError("latent attention (MLA), which " + shape.name +
                       " has, is not supported on the GPU; use --device cpu");
    if (kind.has_kv_heads() && kind.gqa().shares_kv)
      throw InputError("layers that read the K and V of an earlier one, which " + shape.name +
                       " has, are not supported on the GPU; use --device cpu");
  }
}

void require_gpu_runnable(const ModelShape& shape, Dtype activation_dtype, ActivationMode activations) {
  require_gpu_attention(shape);
  for (const LayerKind& kind : shape.kinds)
    if (kind.experts) require_expert_kernels(*kind.experts, shape.layer_format().dtype);
  require_product_kernel(shape.layer_format().dtype, activations);
  if (activation_dtype != Dtype::f16 && activation_dtype != Dtype::f32)
    throw InputError("activations of " + std::string(name(activation_dtype)) +
                     " are not supported on the GPU; use f16 or f32");
  if (!lower::dculab_gpu::is_supported_head_dim(shape.heads().head_dim))
    throw InputError("head_dim " + std::to_string(shape.heads().head_dim) +
                     " is not supported on the GPU; use 32, 64, 80, 96, 128 or 256");
}

}  // namespace dculab::engine
