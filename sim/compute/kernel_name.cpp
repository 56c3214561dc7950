#include "sim/compute/kernel_name.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

#include "core/matmul_tiles.hpp"

namespace dculab::sim {
namespace {

constexpr int kLaneSums = 32;  // kernels/gpu/attention/paged_attention_tiling.hpp

[[nodiscard]] int power_of_two(int value) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value))); }

[[nodiscard]] std::string_view type_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return "float";
    case Dtype::f16:
      return "Half";
    case Dtype::bf16:
      return "Bf16";
    case Dtype::fp8_e4m3:
      return "Fp8E4M3";
    case Dtype::fp8_e5m2:
      return "Fp8E5M2";
    default:
      return {};
  }
}

// name<arguments...>
template <typename... Arguments>
[[nodiscard]] std::string instance(std::string name, const Arguments&... arguments) {
  const char* separator = "<";
  const auto add = [&](const auto& argument) {
    name += separator;
    if constexpr (std::is_convertible_v<decltype(argument), std::string_view>)
      name += argument;
    else
      name += std::to_string(argument);
    separator = ", ";
  };
  (add(arguments), ...);
  return name + ">";
}

[[nodiscard]] std::string decode_name(const AttentionWork& work, int wave_size) {
  const std::string_view cache = type_name(work.kv_dtype);
  if (cache.empty() || work.kv_dtype == Dtype::f32) return {};
  const int values = 128 / bits(work.kv_dtype);  // of 16 bytes
  const int token_lanes = power_of_two(std::max(32, work.head_dim) / values);
  const int lane_heads = std::min(power_of_two(work.heads_per_workgroup), kLaneSums / values);
  const bool is_team = work.heads_per_workgroup > lane_heads;
  return instance("paged_attention_kernel", instance("PagedAttentionTile", wave_size, cache, token_lanes, lane_heads,
                                                     is_team ? "(LaneTeam)1" : "(LaneTeam)0"));
}

[[nodiscard]] std::string prefill_name(const Op& op, int wave_size) {
  const bool pairs = op.activation_dtype == Dtype::f16 && op.attention.kv_dtype != Dtype::bf16;
  return instance("prefill_attention_kernel", wave_size, pairs ? "HalfPair" : "float", op.attention.head_dim);
}

[[nodiscard]] std::string matmul_name(const Op& op, int wave_size) {
  // Rounded activations have one scale a row, and so must int8 weights; int4 is widened.
  const bool is_int8_by_rows = op.weight_format == WeightFormat{Dtype::int8, static_cast<int>(op.k)};
  if (op.activations == ActivationMode::bf16 || (op.activations == ActivationMode::int8 && !is_int8_by_rows)) return {};
  const int m = static_cast<int>(std::min<std::int64_t>(op.m, 1 << 20));
  const bool is_gemv = m <= kGemvMaxRows;
  const int gemv_rows = power_of_two(m);
  const int gemm_rows = m <= 32 ? 32 : m <= 64 ? 64 : 128;
  // Activations other than f16 are f32 on the GPU.
  const std::string_view x = op.activation_dtype == Dtype::f16 ? "Half" : "float";
  if (op.weight_format.dtype == Dtype::int4)
    return is_gemv ? instance("gptq_gemv_kernel", wave_size, gemv_rows, x)
                   : instance("gptq_gemm_kernel", wave_size, std::min(gemm_rows, kGptqTileRows), x);
  if (op.weight_format.dtype == Dtype::int8)
    return is_gemv ? instance("int8_gemv_kernel", wave_size, gemv_rows) : instance("int8_gemm_kernel", gemm_rows);
  const std::string_view w = type_name(op.weight_format.dtype);
  if (w.empty()) return {};
  return is_gemv ? instance("gemv_kernel", wave_size, gemv_rows, x, w) : instance("gemm_kernel", gemm_rows, x, w);
}

// Where nothing is rotated (ALiBi) there is no FLOP, and the cache write is all.
[[nodiscard]] std::string cache_name(const Op& op, int wave_size) {
  if (op.flops > FlopCount()) return instance("rotary_embedding_kernel", wave_size);
  const std::string_view cache = type_name(op.attention.kv_dtype);
  return cache.empty() ? std::string() : instance("reshape_and_cache_kernel", cache);
}

}  // namespace

std::string kernel_name(const Op& op, int wave_size) {
  switch (op.kind) {
    case OpKind::embedding:
      return instance("embedding_kernel", wave_size);
    case OpKind::rms_norm:
      return instance("rms_norm_kernel", wave_size);
    case OpKind::layer_norm:
      return instance("layer_norm_kernel", wave_size);
    case OpKind::matmul:
      return matmul_name(op, wave_size);
    case OpKind::rope_and_cache:
      return cache_name(op, wave_size);
    case OpKind::attention_prefill:
      return prefill_name(op, wave_size);
    case OpKind::attention_decode:
      return decode_name(op.attention, wave_size);
    case OpKind::activation_mul:
      return instance(op.name == "gelu" ? "gelu_kernel" : "silu_and_mul_kernel", wave_size);
    case OpKind::shift_sink_keys:  // on the CPU only
    case OpKind::attention_scores:
      return {};
  }
  return {};
}

}  // namespace dculab::sim
