// The names that compilers give our GPU kernels: "gemv_kernel<64, 8, Half, Bf16>".
#include <algorithm>
#include <array>
#include <charconv>

#include "lower/dculab_gpu/kernel_id.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

// What an argument of a kernel template says, in the order of the arguments.
enum class Argument : std::uint8_t {
  end,
  wave_size,
  rows,
  token_lanes,
  lane_heads,
  team,
  values,
  value_pairs,
  stored,
  code_bits,
};

struct Template {
  Kernel kernel;
  std::string_view name;
  std::array<Argument, 6> arguments;
  std::string_view tail = ">";
};

using enum Argument;
constexpr std::array<Template, 38> kTemplates{{
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
    {Kernel::latent_attention, "latent_attention_kernel", {wave_size, stored}},
    {Kernel::expanded_attention, "expanded_attention_kernel", {wave_size, value_pairs}},
    {Kernel::absorb_k, "absorb_k_kernel", {rows, stored}},
    {Kernel::absorb_v, "absorb_v_kernel", {wave_size, rows, values, stored}},
    {Kernel::update_block_bounds, "update_block_bounds_kernel", {wave_size, stored}},
    {Kernel::bound_blocks, "bound_blocks_kernel", {wave_size, lane_heads}},
    {Kernel::shift_sink_keys, "shift_sink_keys_kernel", {wave_size, stored}},
    {Kernel::attention_scores, "attention_scores_kernel", {wave_size, stored, lane_heads}},
    {Kernel::cache_int8, "cache_int8_kernel", {wave_size}},
    {Kernel::quantize_groups, "quantize_groups_kernel", {wave_size, code_bits}},
    {Kernel::kivi_attention, "kivi_attention_kernel<KiviTile", {wave_size, code_bits, token_lanes, lane_heads}, ">>"},
    {Kernel::kivi_prefill, "kivi_prefill_kernel", {wave_size, value_pairs, code_bits, rows}},
}};

struct Word {
  Dtype dtype;
  std::string_view text;
};
constexpr std::array<Word, 6> kTypes{{{Dtype::f32, "float"},
                                      {Dtype::f16, "Half"},
                                      {Dtype::bf16, "Bf16"},
                                      {Dtype::fp8_e4m3, "Fp8E4M3"},
                                      {Dtype::fp8_e5m2, "Fp8E5M2"},
                                      {Dtype::int8, "Int8"}}};
constexpr std::array<Word, 2> kCodeBits{{{Dtype::kivi4, "4"}, {Dtype::kivi2, "2"}}};
constexpr std::array<Word, 2> kPairs{{{Dtype::f32, "float"}, {Dtype::f16, "HalfPair"}}};
constexpr std::array<std::string_view, 2> kTeams{"(LaneTeam)0", "(LaneTeam)1"};

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
    case code_bits:
      return text_of(kCodeBits, id.stored);
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
    case code_bits:
      return read(kCodeBits, text, id.stored);
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

}  // namespace

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
