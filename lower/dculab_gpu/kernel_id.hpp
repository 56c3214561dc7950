// Which of our GPU kernels runs an op. Follows the launchers (kernels/gpu/launch), which choose a kernel by shapes and
// formats.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/op.hpp"

namespace dculab::lower::dculab_gpu {

enum class Kernel : std::uint8_t {
  none,
  embedding,
  rms_norm,
  layer_norm,
  gemv,
  gemm,
  gptq_gemv,
  gptq_gemm,
  int8_gemv,
  int8_gemm,
  rotary_embedding,
  reshape_and_cache,
  paged_attention,
  prefill_attention,
  gelu,
  silu_and_mul,
  gelu_and_mul,
  head_norm,
  residual_add,
  soft_cap,
  part_rotary_embedding,
  route_tokens,
  combine_experts,
  expert_gemv,
  expert_gemm,
  expert_gptq_gemv,
  expert_gptq_gemm,
  latent_attention,
  expanded_attention,
  absorb_k,
  absorb_v,
  update_block_bounds,
  bound_blocks,
  shift_sink_keys,
  attention_scores,
  cache_int8,
  quantize_groups,
  kivi_attention,
  kivi_prefill,
};

// One instance of a kernel template. Arguments that a kernel does not have are 0, formats that it does not have F32.
struct KernelId {
  Kernel kernel = Kernel::none;
  int wave_size = 0;
  int rows = 0;               // of y that a workgroup computes; of a prefill kernel the values of a head
  int token_lanes = 0;        // paged and KIVI attention: lanes that share a token
  int lane_heads = 0;         // paged and KIVI attention, attention scores, bound_blocks: heads that a lane serves
  bool is_team = false;       // paged attention: lanes share the heads of a group
  Dtype values = Dtype::f32;  // that are computed with
  Dtype stored = Dtype::f32;  // weights, or the KV cache

  friend auto operator<=>(const KernelId&, const KernelId&) = default;
};

// heads_per_workgroup: query heads that a workgroup of decode attention serves.
// Kernel::none where no kernel of ours runs the op. rope_and_cache is two kernels, but with ALiBi (of latents three; of
// kivi4 and kivi2 where a group of tokens is complete), attention over a KIVI cache ends with keep_residual, and two
// are route_tokens and choose_critical_blocks; the first stands for all. A product that expands latents has kernels
// before and after it.
[[nodiscard]] KernelId kernel_of(const Op& op, int wave_size, int heads_per_workgroup);

// Query heads whose scores a workgroup of attention_scores has at once, of sequences of equal contexts.
[[nodiscard]] int heads_scored_at_once(const AttentionWork& work);

// The name that the compiler gives it: "gemv_kernel<64, 8, Half, Bf16>". Empty for Kernel::none.
[[nodiscard]] std::string name(const KernelId& id);

// The kernel of that name; nothing where no op is run by it alone: "softmax_kernel<64>".
[[nodiscard]] std::optional<KernelId> parse_kernel(std::string_view name);

}  // namespace dculab::lower::dculab_gpu
