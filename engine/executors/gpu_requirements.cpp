#include "engine/executors/gpu_requirements.hpp"

#include <string>

#include "core/error.hpp"
#include "lower/dculab_gpu/expert_plan.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"

namespace dculab::engine {
namespace {

// int4 is widened, int8 multiplied as integers: there is one kernel for each. FP8 is widened too.
void require_product_kernel(Dtype weights, ActivationMode activations) {
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

// Of a part of a head, or a latent.
void require_part(const char* field, int value, int most) {
  if (value % 8 == 0 && value <= most) return;
  throw InputError(std::string(field) + " " + std::to_string(value) +
                   " is not supported on the GPU; there are kernels for multiples of 8 up to " + std::to_string(most));
}

void require_latent_kernels(const Mla& attention, Dtype weights) {
  namespace gpu = lower::dculab_gpu;
  require_part("kv_lora_rank", attention.kv_lora_rank, gpu::kMostLatentRank);
  require_part("q_lora_rank", attention.q_lora_rank, 1 << 16);
  require_part("qk_nope_head_dim", attention.qk_nope_head_dim, gpu::kExpandedHeadDim);
  require_part("qk_rope_head_dim", attention.qk_rope_head_dim, gpu::kMostLatentWidth - gpu::kMostLatentRank);
  require_part("qk_nope_head_dim + qk_rope_head_dim", attention.qk_head_dim(), gpu::kExpandedHeadDim);
  require_part("v_head_dim", attention.v_head_dim, gpu::kExpandedValueDim);
  if (bits(weights) < 16 && weights != Dtype::fp8_e4m3)
    throw InputError("latent attention with weights of " + std::string(name(weights)) +
                     " is not supported on the GPU; use --device cpu");
}

// Of a layer that has neither heads of K and V nor latents.
[[nodiscard]] const char* unsupported_attention(const LayerKind& kind) {
  return kind.compressed() != nullptr ? "compressed attention" : "gated delta nets";
}

void require_gpu_attention(const ModelShape& shape) {
  for (const LayerKind& kind : shape.kinds) {
    if (kind.mla() != nullptr)
      require_latent_kernels(*kind.mla(), shape.layer_format().dtype);
    else if (!kind.has_kv_heads())
      throw InputError(shape.name + " has layers of " + unsupported_attention(kind) + ", which are priced, not run");
    else if (!lower::dculab_gpu::is_supported_head_dim(kind.gqa().heads.head_dim))
      throw InputError("head_dim " + std::to_string(kind.gqa().heads.head_dim) +
                       " is not supported on the GPU; use 32, 64, 80, 96, 128 or 256");
  }
}

}  // namespace

void require_gpu_runnable(const ModelShape& shape, Dtype activation_dtype, ActivationMode activations) {
  for (const LayerKind& kind : shape.kinds)
    if (kind.experts) require_expert_kernels(*kind.experts, shape.layer_format().dtype);
  require_product_kernel(shape.layer_format().dtype, activations);
  if (activation_dtype != Dtype::f16 && activation_dtype != Dtype::f32)
    throw InputError("activations of " + std::string(name(activation_dtype)) +
                     " are not supported on the GPU; use f16 or f32");
  require_gpu_attention(shape);
}

}  // namespace dculab::engine
