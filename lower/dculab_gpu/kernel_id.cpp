#include "lower/dculab_gpu/kernel_id.hpp"

#include <algorithm>
#include <bit>

#include "lower/dculab_gpu/attention_scores_tiling.hpp"
#include "lower/dculab_gpu/expert_plan.hpp"
#include "lower/dculab_gpu/kivi_tiling.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "lower/dculab_gpu/product_streams.hpp"
#include "lower/kv/critical_blocks_geometry.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

// Formats that kernels of values are compiled for.
[[nodiscard]] bool is_float(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::fp8_e4m3 ||
         dtype == Dtype::fp8_e5m2;
}

[[nodiscard]] bool is_matrix(Dtype dtype) { return is_float(dtype) && dtype != Dtype::fp8_e5m2; }

[[nodiscard]] bool is_plain_cache(Dtype dtype) { return is_float(dtype) && dtype != Dtype::f32; }

[[nodiscard]] bool is_cache(Dtype dtype) { return is_plain_cache(dtype) || dtype == Dtype::int8; }

[[nodiscard]] KernelId decode_kernel(const AttentionWork& work, int wave, int heads) {
  if (is_kivi(work.kv_dtype)) {
    const KiviTiling tiling = tile_kivi_attention(work.kv_dtype, work.head_dim, heads);
    return {.kernel = Kernel::kivi_attention,
            .wave_size = wave,
            .token_lanes = tiling.token_lanes,
            .lane_heads = tiling.lane_heads,
            .stored = work.kv_dtype};
  }
  if (!is_cache(work.kv_dtype)) return {};
  const PagedAttentionTiling tiling = tile_paged_attention(work.kv_dtype, work.head_dim, heads);
  return {.kernel = Kernel::paged_attention,
          .wave_size = wave,
          .token_lanes = tiling.token_lanes,
          .lane_heads = tiling.lane_heads,
          .is_team = tiling.team > 1,
          .stored = work.kv_dtype};
}

[[nodiscard]] KernelId prefill_kernel(const Op& op, int wave) {
  const bool pairs = prefill_arithmetic(op.activation_dtype, op.attention.kv_dtype) == PrefillArithmetic::half_pairs;
  KernelId id{.kernel = Kernel::prefill_attention,
              .wave_size = wave,
              .rows = op.attention.head_dim,
              .values = pairs ? Dtype::f16 : Dtype::f32};
  if (is_kivi(op.attention.kv_dtype)) id.kernel = Kernel::kivi_prefill, id.stored = op.attention.kv_dtype;
  return id;
}

// Over latents, or over what they expand to, which is F16.
[[nodiscard]] KernelId latent_kernel(const Op& op, int wave) {
  if (!op.attention.is_latent)
    return {.kernel = Kernel::expanded_attention, .wave_size = wave, .values = activations_of(op)};
  if (!is_plain_cache(op.attention.kv_dtype)) return {};
  return {.kernel = Kernel::latent_attention, .wave_size = wave, .stored = op.attention.kv_dtype};
}

// A head is a group.
[[nodiscard]] KernelId absorb_kernel(const Op& op, int wave) {
  const int rows = absorb_rows(static_cast<int>(std::min<std::int64_t>(op.m / op.groups.count, kAbsorbRows)));
  if (!is_matrix(op.weight_format.dtype) || op.activations != ActivationMode::exact) return {};
  if (op.output == Buffer::latent_queries)
    return {.kernel = Kernel::absorb_k, .rows = rows, .stored = op.weight_format.dtype};
  return {.kernel = Kernel::absorb_v,
          .wave_size = wave,
          .rows = rows,
          .values = activations_of(op),
          .stored = op.weight_format.dtype};
}

[[nodiscard]] KernelId matmul_kernel(const Op& op, int wave) {
  // Rounded activations have one scale a row, and so must int8 weights; int4 is widened.
  const Dtype weights = op.weight_format.dtype;
  const bool is_int8_by_rows = op.weight_format == WeightFormat{Dtype::int8, static_cast<int>(op.k)};
  if (op.activations == ActivationMode::bf16 || (op.activations == ActivationMode::int8 && !is_int8_by_rows)) return {};
  const int m = static_cast<int>(std::min<std::int64_t>(op.m, 1 << 20));
  const bool is_gemv = m <= kGemvMaxRows;
  const int gemv_rows = static_cast<int>(std::bit_ceil(static_cast<unsigned>(m)));
  const int gemm_rows = gemm_tile_rows(m);
  const Dtype x = activations_of(op);
  if (weights == Dtype::int4)
    return is_gemv ? KernelId{.kernel = Kernel::gptq_gemv, .wave_size = wave, .rows = gemv_rows, .values = x}
                   : KernelId{.kernel = Kernel::gptq_gemm,
                              .wave_size = wave,
                              .rows = std::min(gemm_rows, kGptqTileRows),
                              .values = x};
  if (weights == Dtype::int8)
    return is_gemv ? KernelId{.kernel = Kernel::int8_gemv, .wave_size = wave, .rows = gemv_rows}
                   : KernelId{.kernel = Kernel::int8_gemm, .rows = gemm_rows};
  if (!is_matrix(weights)) return {};
  return is_gemv
             ? KernelId{.kernel = Kernel::gemv, .wave_size = wave, .rows = gemv_rows, .values = x, .stored = weights}
             : KernelId{.kernel = Kernel::gemm, .rows = gemm_rows, .values = x, .stored = weights};
}

[[nodiscard]] KernelId expert_kernel(const Op& op, int wave) {
  const Dtype weights = op.weight_format.dtype, x = activations_of(op);
  if (op.activations != ActivationMode::exact) return {};
  const ExpertPlan plan = plan_expert_matmul(op.m, op.groups.count, weights);
  if (weights == Dtype::int4)
    return {.kernel = plan.is_gemv() ? Kernel::expert_gptq_gemv : Kernel::expert_gptq_gemm,
            .wave_size = wave,
            .rows = plan.rows,
            .values = x};
  if (!is_matrix(weights)) return {};
  return {.kernel = plan.is_gemv() ? Kernel::expert_gemv : Kernel::expert_gemm,
          .wave_size = plan.is_gemv() ? wave : 0,
          .rows = plan.rows,
          .values = x,
          .stored = weights};
}

[[nodiscard]] Kernel activation_kernel(const Op& op) {
  switch (op.activation) {
    case OpActivation::gelu:
      return Kernel::gelu;
    case OpActivation::gelu_and_mul:
      return Kernel::gelu_and_mul;
    case OpActivation::silu_and_mul:
    case OpActivation::plain:
      return Kernel::silu_and_mul;
  }
  return Kernel::silu_and_mul;
}

// Of ops that compute each row by itself, in the same way whatever its values are stored in.
[[nodiscard]] Kernel kernel_of_rows(const Op& op) {
  switch (op.kind) {
    case OpKind::embedding:
      return Kernel::embedding;
    case OpKind::rms_norm:  // a norm in place is a head's, of all values
      return op.input == op.output ? Kernel::head_norm : Kernel::rms_norm;
    case OpKind::qk_norm:
      return Kernel::head_norm;
    case OpKind::layer_norm:
      return Kernel::layer_norm;
    case OpKind::residual_add:
      return Kernel::residual_add;
    case OpKind::soft_cap:
      return Kernel::soft_cap;
    case OpKind::route_tokens:
      return Kernel::route_tokens;
    case OpKind::combine_experts:
      return Kernel::combine_experts;
    case OpKind::activation_mul:
      return activation_kernel(op);
    default:
      return Kernel::none;
  }
}

[[nodiscard]] KernelId product_kernel(const Op& op, int wave) {
  if (op.groups.count == 0) return matmul_kernel(op, wave);
  return op.weight == WeightSlot::kv_b_proj ? absorb_kernel(op, wave) : expert_kernel(op, wave);
}

[[nodiscard]] KernelId attention_kernel(const Op& op, int wave, int heads_per_workgroup) {
  if (op.attention.is_latent || !op.attention.is_paged) return latent_kernel(op, wave);
  return op.kind == OpKind::attention_prefill ? prefill_kernel(op, wave)
                                              : decode_kernel(op.attention, wave, heads_per_workgroup);
}

[[nodiscard]] KernelId cache_kernel(const Op& op, int wave) {
  if (op.rotates)
    return {.kernel = op.rotates_part ? Kernel::part_rotary_embedding : Kernel::rotary_embedding, .wave_size = wave};
  if (op.attention.kv_dtype == Dtype::int8) return {.kernel = Kernel::cache_int8, .wave_size = wave};
  if (is_kivi(op.attention.kv_dtype))
    return {.kernel = Kernel::quantize_groups, .wave_size = wave, .stored = op.attention.kv_dtype};
  if (!is_plain_cache(op.attention.kv_dtype)) return {};
  return {.kernel = Kernel::reshape_and_cache, .stored = op.attention.kv_dtype};
}

[[nodiscard]] KernelId kv_policy_kernel(const Op& op, int wave) {
  const AttentionWork& work = op.attention;
  if (op.kind == OpKind::choose_critical_blocks)
    return {.kernel = Kernel::bound_blocks,
            .wave_size = wave,
            .lane_heads = bounds_lane_heads(work.num_query_heads / work.num_kv_heads)};
  if (!is_cache(work.kv_dtype)) return {};
  if (op.kind == OpKind::shift_sink_keys)
    return {.kernel = Kernel::shift_sink_keys, .wave_size = wave, .stored = work.kv_dtype};
  if (op.kind == OpKind::update_block_bounds && !is_plain_cache(work.kv_dtype)) return {};
  if (op.kind == OpKind::update_block_bounds)
    return {.kernel = Kernel::update_block_bounds, .wave_size = wave, .stored = work.kv_dtype};
  return {.kernel = Kernel::attention_scores,
          .wave_size = wave,
          .lane_heads = heads_scored_at_once(work),
          .stored = work.kv_dtype};
}

}  // namespace

int heads_scored_at_once(const AttentionWork& work) {
  return scored_heads(work.num_query_heads / work.num_kv_heads,
                      static_cast<int>(work.context_tokens / work.num_sequences));
}

KernelId kernel_of(const Op& op, int wave, int heads_per_workgroup) {
  switch (op.kind) {
    case OpKind::embedding:
    case OpKind::rms_norm:
    case OpKind::qk_norm:
    case OpKind::layer_norm:
    case OpKind::residual_add:
    case OpKind::soft_cap:
    case OpKind::route_tokens:
    case OpKind::combine_experts:
    case OpKind::activation_mul:
      return {.kernel = kernel_of_rows(op), .wave_size = wave};
    case OpKind::matmul:
      return product_kernel(op, wave);
    case OpKind::rope_and_cache:
      return cache_kernel(op, wave);
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
      return attention_kernel(op, wave, heads_per_workgroup);
    case OpKind::shift_sink_keys:
    case OpKind::update_block_bounds:
    case OpKind::choose_critical_blocks:
    case OpKind::attention_scores:
      return kv_policy_kernel(op, wave);
    case OpKind::output_gate:  // priced only
    case OpKind::causal_conv:
    case OpKind::delta_rule:
    case OpKind::gated_norm:
    case OpKind::compress_kv:
    case OpKind::index_scores:
    case OpKind::choose_entries:
    case OpKind::mix_streams:
    case OpKind::all_reduce:  // libraries'
    case OpKind::all_gather:
    case OpKind::dispatch_tokens:
    case OpKind::return_tokens:
      return {};
  }
  return {};
}

}  // namespace dculab::lower::dculab_gpu
