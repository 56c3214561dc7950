#include "lower/dculab_gpu/kernel_id.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "lower/dculab_gpu/expert_plan.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

// What an argument of a kernel template says, in the order of the arguments.
enum class Argument : std::uint8_t { end, wave_size, rows, token_lanes, lane_heads, team, values, value_pairs, stored };

struct Template {
  Kernel kernel;
  std::string_view name;
  std::array<Argument, 6> arguments;
  std::string_view tail = ">";
};

using enum Argument;
constexpr std::array<Template, 26> kTemplates{{
    {Kernel::embedding, "embedding_kernel", {wave_size}},
    {Kernel::rms_norm, "rms_norm_kernel", {wave_size}},
    {Kernel::layer_norm, "layer_norm_kernel", {wave_size}},
    {Kernel::gemv, "gemv_kernel", {wave_size, rows, values, stored}},
    {Kernel::gemm, "gemm_kernel", {rows, values, stored}},
    {Kernel::gptq_gemv, "gptq_gemv_kernel", {wave_size, rows, values}},
    {Kernel::gptq_gemm, "gptq_gemm_kernel", {wave_size, rows, values}},
    {Kernel::int8_gemv, "int8_gemv_kernel", {wave_size, rows}},
    {Kernel::int8_gemm, "int8_gemm_kernel", {rows}},
    {Kernel::rotary_embedding, "rotary_embedding_kernel", {wave_size}},
    {Kernel::reshape_and_cache, "reshape_and_cache_kernel", {stored}},
    {Kernel::paged_attention,
     "paged_attention_kernel<PagedAttentionTile",
     {wave_size, stored, token_lanes, lane_heads, team},
     ">>"},
    {Kernel::prefill_attention, "prefill_attention_kernel", {wave_size, value_pairs, rows}},
    {Kernel::gelu, "gelu_kernel", {wave_size}},
    {Kernel::silu_and_mul, "silu_and_mul_kernel", {wave_size}},
    {Kernel::gelu_and_mul, "gelu_and_mul_kernel", {wave_size}},
    {Kernel::head_norm, "head_norm_kernel", {wave_size}},
    {Kernel::residual_add, "residual_add_kernel", {wave_size}},
    {Kernel::soft_cap, "soft_cap_kernel", {wave_size}},
    {Kernel::part_rotary_embedding, "part_rotary_embedding_kernel", {wave_size}},
    {Kernel::route_tokens, "route_tokens_kernel", {wave_size}},
    {Kernel::combine_experts, "combine_experts_kernel", {wave_size}},
    {Kernel::expert_gemv, "expert_gemv_kernel", {wave_size, rows, values, stored}},
    {Kernel::expert_gemm, "expert_gemm_kernel", {rows, values, stored}},
    {Kernel::expert_gptq_gemv, "expert_gptq_gemv_kernel", {wave_size, rows, values}},
    {Kernel::expert_gptq_gemm, "expert_gptq_gemm_kernel", {wave_size, rows, values}},
}};

struct Word {
  Dtype dtype;
  std::string_view text;
};
constexpr std::array<Word, 5> kTypes{{{Dtype::f32, "float"},
                                      {Dtype::f16, "Half"},
                                      {Dtype::bf16, "Bf16"},
                                      {Dtype::fp8_e4m3, "Fp8E4M3"},
                                      {Dtype::fp8_e5m2, "Fp8E5M2"}}};
constexpr std::array<Word, 2> kPairs{{{Dtype::f32, "float"}, {Dtype::f16, "HalfPair"}}};
constexpr std::array<std::string_view, 2> kTeams{"(LaneTeam)0", "(LaneTeam)1"};

[[nodiscard]] bool is_type(Dtype dtype) {
  return std::ranges::any_of(kTypes, [dtype](const Word& word) { return word.dtype == dtype; });
}

template <std::size_t size>
[[nodiscard]] std::string text_of(const std::array<Word, size>& words, Dtype dtype) {
  return std::string(std::ranges::find(words, dtype, &Word::dtype)->text);
}

template <std::size_t size>
[[nodiscard]] bool read(const std::array<Word, size>& words, std::string_view text, Dtype& dtype) {
  const auto found = std::ranges::find(words, text, &Word::text);
  if (found != words.end()) dtype = found->dtype;
  return found != words.end();
}

[[nodiscard]] bool read(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

[[nodiscard]] std::string text_of(const KernelId& id, Argument argument) {
  switch (argument) {
    case wave_size:
      return std::to_string(id.wave_size);
    case rows:
      return std::to_string(id.rows);
    case token_lanes:
      return std::to_string(id.token_lanes);
    case lane_heads:
      return std::to_string(id.lane_heads);
    case team:
      return std::string(kTeams[id.is_team ? 1 : 0]);
    case values:
      return text_of(kTypes, id.values);
    case value_pairs:
      return text_of(kPairs, id.values);
    case stored:
      return text_of(kTypes, id.stored);
    case end:
      break;
  }
  return {};
}

[[nodiscard]] bool read(std::string_view text, Argument argument, KernelId& id) {
  switch (argument) {
    case wave_size:
      return read(text, id.wave_size);
    case rows:
      return read(text, id.rows);
    case token_lanes:
      return read(text, id.token_lanes);
    case lane_heads:
      return read(text, id.lane_heads);
    case team:
      id.is_team = text == kTeams[1];
      return id.is_team || text == kTeams[0];
    case values:
      return read(kTypes, text, id.values);
    case value_pairs:
      return read(kPairs, text, id.values);
    case stored:
      return read(kTypes, text, id.stored);
    case end:
      break;
  }
  return false;
}

[[nodiscard]] std::optional<KernelId> parse(const Template& form, std::string_view text) {
  if (!text.starts_with(form.name) || !text.ends_with(form.tail)) return std::nullopt;
  text.remove_prefix(form.name.size());
  text.remove_suffix(form.tail.size());
  KernelId id{.kernel = form.kernel};
  std::string_view separator = "<";
  for (const Argument argument : form.arguments) {
    if (argument == end) break;
    if (!text.starts_with(separator)) return std::nullopt;
    text.remove_prefix(separator.size());
    if (!read(text.substr(0, text.find(", ")), argument, id)) return std::nullopt;
    text.remove_prefix(std::min(text.find(", "), text.size()));
    separator = ", ";
  }
  return text.empty() ? std::optional(id) : std::nullopt;
}

[[nodiscard]] KernelId decode_kernel(const AttentionWork& work, int wave, int heads) {
  if (!is_type(work.kv_dtype) || work.kv_dtype == Dtype::f32) return {};
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
  return {.kernel = Kernel::prefill_attention,
          .wave_size = wave,
          .rows = op.attention.head_dim,
          .values = pairs ? Dtype::f16 : Dtype::f32};
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
  // Activations other than f16 are f32 on the GPU.
  const Dtype x = op.activation_dtype == Dtype::f16 ? Dtype::f16 : Dtype::f32;
  if (weights == Dtype::int4)
    return is_gemv ? KernelId{.kernel = Kernel::gptq_gemv, .wave_size = wave, .rows = gemv_rows, .values = x}
                   : KernelId{.kernel = Kernel::gptq_gemm,
                              .wave_size = wave,
                              .rows = std::min(gemm_rows, kGptqTileRows),
                              .values = x};
  if (weights == Dtype::int8)
    return is_gemv ? KernelId{.kernel = Kernel::int8_gemv, .wave_size = wave, .rows = gemv_rows}
                   : KernelId{.kernel = Kernel::int8_gemm, .rows = gemm_rows};
  if (!is_type(weights)) return {};
  return is_gemv
             ? KernelId{.kernel = Kernel::gemv, .wave_size = wave, .rows = gemv_rows, .values = x, .stored = weights}
             : KernelId{.kernel = Kernel::gemm, .rows = gemm_rows, .values = x, .stored = weights};
}

[[nodiscard]] KernelId expert_kernel(const Op& op, int wave) {
  const Dtype weights = op.weight_format.dtype, x = op.activation_dtype == Dtype::f16 ? Dtype::f16 : Dtype::f32;
  if (op.activations != ActivationMode::exact) return {};
  const ExpertPlan plan = plan_expert_matmul(op.m, op.groups.count, weights);
  if (weights == Dtype::int4)
    return {.kernel = plan.is_gemv() ? Kernel::expert_gptq_gemv : Kernel::expert_gptq_gemm,
            .wave_size = wave,
            .rows = plan.rows,
            .values = x};
  if (weights != Dtype::f16 && weights != Dtype::bf16 && weights != Dtype::f32) return {};
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

[[nodiscard]] KernelId cache_kernel(const Op& op, int wave) {
  if (op.rotates)
    return {.kernel = op.rotates_part ? Kernel::part_rotary_embedding : Kernel::rotary_embedding, .wave_size = wave};
  if (!is_type(op.attention.kv_dtype)) return {};
  return {.kernel = Kernel::reshape_and_cache, .stored = op.attention.kv_dtype};
}

}  // namespace

KernelId kernel_of(const Op& op, int wave, int heads_per_workgroup) {
  if (op.attention.is_latent || !op.attention.is_paged) return {};  // on the CPU only
  switch (op.kind) {
    case OpKind::embedding:
      return {.kernel = Kernel::embedding, .wave_size = wave};
    case OpKind::rms_norm:  // a norm in place is a head's, of all values
      return {.kernel = op.input == op.output ? Kernel::head_norm : Kernel::rms_norm, .wave_size = wave};
    case OpKind::qk_norm:
      return {.kernel = Kernel::head_norm, .wave_size = wave};
    case OpKind::residual_add:
      return {.kernel = Kernel::residual_add, .wave_size = wave};
    case OpKind::soft_cap:
      return {.kernel = Kernel::soft_cap, .wave_size = wave};
    case OpKind::layer_norm:
      return {.kernel = Kernel::layer_norm, .wave_size = wave};
    case OpKind::matmul:
      return op.groups.count > 0 ? expert_kernel(op, wave) : matmul_kernel(op, wave);
    case OpKind::route_tokens:
      return {.kernel = Kernel::route_tokens, .wave_size = wave};
    case OpKind::combine_experts:
      return {.kernel = Kernel::combine_experts, .wave_size = wave};
    case OpKind::rope_and_cache:
      return cache_kernel(op, wave);
    case OpKind::attention_prefill:
      return prefill_kernel(op, wave);
    case OpKind::attention_decode:
      return decode_kernel(op.attention, wave, heads_per_workgroup);
    case OpKind::activation_mul:
      return {.kernel = activation_kernel(op), .wave_size = wave};
    case OpKind::shift_sink_keys:  // on the CPU only
    case OpKind::attention_scores:
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

std::string name(const KernelId& id) {
  const auto form = std::ranges::find(kTemplates, id.kernel, &Template::kernel);
  if (form == kTemplates.end()) return {};
  std::string text(form->name);
  const char* separator = "<";
  for (const Argument argument : form->arguments) {
    if (argument == end) break;
    text += separator + text_of(id, argument);
    separator = ", ";
  }
  return text += form->tail;
}

std::optional<KernelId> parse_kernel(std::string_view name) {
  for (const Template& form : kTemplates)
    if (const auto id = parse(form, name)) return id;
  return std::nullopt;
}

}  // namespace dculab::lower::dculab_gpu
