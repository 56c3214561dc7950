// What every kernel must compute: double precision, one plain loop nest each. Slow, and the truth for the others.
// Arguments, shapes and formulas: kernels/ops.hpp. Preconditions are the caller's duty and are not checked.
#pragma once

#include "kernels/expert_ops.hpp"
#include "kernels/kv/heavy_hitters.hpp"
#include "kernels/latent_ops.hpp"
#include "kernels/ops.hpp"
#include "kernels/quantized_matrix.hpp"
#include "kernels/quantized_ops.hpp"

namespace dculab::kernels::reference {

void matmul(const MatmulArgs& args);

// One dequantised weight, exact in double. `g_idx` may name the groups in any order (act-order).
// The sum zero + zero_offset is not cut to four bits: a stored 15 of a "gptq" checkpoint is a zero point of 16.
[[nodiscard]] double gptq_weight(const GptqWeightView& weight, int k, int n);
void gptq_matmul(const GptqMatmulArgs& args);

// y[m, n] = sum over k of x[m, k] * weight[n, k] + bias[n], with x as it is or, int8, as activation_group_size says.
struct QuantizedMatmulArgs {
  const float* x = nullptr;  // [m, weight->columns]
  const QuantizedMatrix* weight = nullptr;
  const float* bias = nullptr;  // [weight->rows], or null
  float* y = nullptr;           // [m, weight->rows]
  int m = 0;
  ActivationMode activations = ActivationMode::exact;
};
void quantized_matmul(const QuantizedMatmulArgs& args);

// Precondition: k < 2^17, so that the int32 sum cannot overflow.
void int8_matmul(const Int8MatmulArgs& args);

// Divides in F32 and rounds ties to even, so that bytes can be compared; a row of zeros has scale 0. -128 is not used.
// Precondition: x is finite.
void quantize_rows(const QuantizeRowsArgs& args);

void rms_norm(const RmsNormArgs& args);
void layer_norm(const LayerNormArgs& args);
void embedding(const EmbeddingArgs& args);
void head_norm(const HeadNormArgs& args);
void residual_add(const ResidualAddArgs& args);
void soft_cap(const SoftCapArgs& args);
void silu_mul(const SiluMulArgs& args);
void gelu_mul(const GeluMulArgs& args);
void gelu(const GeluArgs& args);

// Scores and weights in double. Groups are of the same size.
void route_tokens(const RouteTokensArgs& args);
// Weights of plain floats.
void expert_matmul(const ExpertMatmulArgs& args);
void combine_experts(const CombineExpertsArgs& args);

// -0 and +0 are equal. NaN comes after every number.
void top_k(const TopKArgs& args);

// Preconditions of what uses the cache: each slot and block id within the cache; head_dim even for rope_and_cache;
// num_heads a multiple of num_kv_heads; scales > 0 where the cache is FP8.
// No two tokens of a call have the same slot.
void rope_and_cache(const RopeAndCacheArgs& args);

// Does not serve kivi4 and kivi2.
void reshape_and_cache(const ReshapeAndCacheArgs& args);

// In order: a later pair may copy what an earlier one wrote.
void copy_blocks(const CopyBlocksArgs& args);

// Preconditions as of rope_and_cache. Products: weights of plain floats.
void latent_rope_and_cache(const LatentRopeArgs& args);
void gather_latents(const GatherLatentsArgs& args);
void store_expanded(const StoreExpandedArgs& args);
void absorb_k(const AbsorbArgs& args);
void absorb_v(const AbsorbArgs& args);

// context_lens[i] >= the new tokens of sequence i, whose keys and values are in the cache already.
void paged_attention(const PagedAttentionArgs& args);

// H2O's sums are rounded to F32 after each addition, as they are kept.
void attention_scores(const AttentionScoresArgs& args);

}  // namespace dculab::kernels::reference
