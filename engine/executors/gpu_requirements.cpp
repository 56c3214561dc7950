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

// The format of the cache is the KV storage's to refuse.
void require_latent_kernels(const Mla& attention, Dtype weights) {
  namespace gpu = lower::dculab_gpu;
  for (const gpu::LatentLimit& limit : gpu::latent_limits({.kv_lora_rank = attention.kv_lora_rank,
                                       .q_lora_rank = attention.q_lora_rank,
                                       .qk_nope_head_dim = attention.qk_nope_head_dim,
                                       .qk_rope_head_dim = attention.qk_rope_head_dim,
                                       .v_head_dim = attention.v_head_dim}))
    if (!limit.holds())
      throw InputError(std::string(limit.field) + " " + std::to_string(limit.value) +
                       " is not supported on the GPU; there are kernels for multiples of 8 up to " +
                       std::to_string(limit.most));
  if (!gpu::is_supported_latent_weight(weights))
    throw InputError(
        "latent attention whose kv_b_proj is in " + std::string(name(weights)) +
        " is not supported on the GPU, which multiplies it head by head in f32, f16, bf16 or fp8_e4m3; use "
        "a checkpoint whose attention is not quantized, or --device cpu");
}

// Of a layer that has neither heads of K and V nor latents.
[[nodiscard]] const char* unsupported_attention(const LayerKind& kind) {
  return kind.compressed() != nullptr ? "compressed attention" : "gated delta nets";
}

void require_gpu_attention(const ModelShape& shape) {
  for (const LayerKind& kind : shape.kinds) {
    if (kind.mla() != nullptr)
      require_latent_kernels(*kind.mla(), shape.slot_format(WeightSlot::kv_b_proj, kind, shape.layer_format()).dtype);
    else if (!kind.has_kv_heads())
      throw InputError(shape.name + " has layers of " + unsupported_attention(kind) + ", which are predicted, not run");
    else if (!kind.gqa().group_sizes.empty())
      throw InputError(shape.name + " has groups of different numbers of query heads, which run on the CPU only");
    else if (!lower::dculab_gpu::is_supported_head_dim(kind.gqa().heads.head_dim))
      throw InputError("head_dim " + std::to_string(kind.gqa().heads.head_dim) +
                       " is not supported on the GPU; use 32, 64, 80, 96, 128 or 256");
  }
}

}  // namespace

void require_gpu_runnable(const ModelShape& shape, Dtype activation_dtype, ActivationMode activations) {
  for (const LayerKind& kind : shape.kinds)
    if (kind.experts)
      require_expert_kernels(*kind.experts,
                             shape.slot_format(WeightSlot::expert_up_proj, kind, shape.layer_format()).dtype);
  require_product_kernel(shape.layer_format().dtype, activations);
  if (activation_dtype != Dtype::f16 && activation_dtype != Dtype::f32)
    throw InputError("activations of " + std::string(name(activation_dtype)) +
                     " are not supported on the GPU; use f16 or f32");
  require_gpu_attention(shape);
}

}  // namespace dculab::engine
