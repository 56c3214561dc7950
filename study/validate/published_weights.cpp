#include "study/validate/published_weights.hpp"

#include <algorithm>
#include <array>

#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "core/letter_case.hpp"

namespace dculab::study {
namespace {

// GGUF: bits of a block as ggml-common.h has them. The mixes hold half of attn_v and ffn_down in the next larger format
// (llama_tensor_get_type), 14 % of a layer's weights, and Q3_K_L also attn_output; those of IQ1 to IQ3 are what
// llama-quantize prints. The head is Q6_K (6.6 bits) or Q8_0, priced as int8.
constexpr PublishedWeights gguf(std::string_view published, Dtype dtype, double bits, std::string_view note) {
  return {published, {dtype, 32}, Dtype::int8, bits, note};
}
constexpr std::array<PublishedWeights, 37> kWeights{{
    gguf("q2_k", Dtype::int4, 3.0, "Q2_K as int4 of 3.0 bits a weight; head as int8"),
    gguf("q2_k_s", Dtype::int4, 2.7, "Q2_K_S as int4 of 2.7 bits a weight; head as int8"),
    gguf("q3_k_s", Dtype::int4, 3.4375, "Q3_K_S as int4 of 3.4 bits a weight; head as int8"),
    gguf("q3_k_l", Dtype::int4, 4.2, "Q3_K_L as int4 of 4.2 bits a weight; head as int8"),
    gguf("iq1_s", Dtype::int4, 1.56, "IQ1_S as int4 of 1.6 bits a weight; head as int8"),
    gguf("iq1_m", Dtype::int4, 1.75, "IQ1_M as int4 of 1.75 bits a weight; head as int8"),
    gguf("iq2_xxs", Dtype::int4, 2.06, "IQ2_XXS as int4 of 2.1 bits a weight; head as int8"),
    gguf("iq2_xs", Dtype::int4, 2.31, "IQ2_XS as int4 of 2.3 bits a weight; head as int8"),
    gguf("iq2_s", Dtype::int4, 2.5, "IQ2_S as int4 of 2.5 bits a weight; head as int8"),
    gguf("iq2_m", Dtype::int4, 2.7, "IQ2_M as int4 of 2.7 bits a weight; head as int8"),
    gguf("iq3_xxs", Dtype::int4, 3.06, "IQ3_XXS as int4 of 3.1 bits a weight; head as int8"),
    gguf("iq3_xs", Dtype::int4, 3.3, "IQ3_XS as int4 of 3.3 bits a weight; head as int8"),
    gguf("iq3_s", Dtype::int4, 3.44, "IQ3_S as int4 of 3.4 bits a weight; head as int8"),
    gguf("iq3_m", Dtype::int4, 3.66, "IQ3_M as int4 of 3.7 bits a weight; head as int8"),
    gguf("iq4_nl", Dtype::int4, 4.5, "IQ4_NL as int4 of 4.5 bits a weight; head as int8"),
    gguf("mxfp4", Dtype::int4, 4.25, "MXFP4 as int4 of 4.25 bits a weight; head as int8"),
    gguf("q3_k_m", Dtype::int4, 3.9, "Q3_K_M as int4 of 3.9 bits a weight; head as int8"),
    gguf("iq4_xs", Dtype::int4, 4.25, "IQ4_XS as int4 of 4.25 bits a weight; head as int8"),
    gguf("q4_0", Dtype::int4, 4.5, "Q4_0 as int4 of 4.5 bits a weight; head Q6_K as int8"),
    gguf("q4_1", Dtype::int4, 5.0, "Q4_1 as int4 of 5.0 bits a weight; head Q6_K as int8"),
    gguf("q4_k_s", Dtype::int4, 4.6, "Q4_K_S as int4 of 4.6 bits a weight; head Q6_K as int8"),
    gguf("q4_k_m", Dtype::int4, 4.8, "Q4_K_M as int4 of 4.8 bits a weight; head Q6_K as int8"),
    gguf("ud-q4_k_xl", Dtype::int4, 4.9, "UD-Q4_K_XL as int4 of about 4.9 bits a weight; head as int8"),
    gguf("ud-q4_k_m", Dtype::int4, 4.9, "UD-Q4_K_M as int4 of about 4.9 bits a weight; head as int8"),
    gguf("q5_0", Dtype::int8, 5.5, "Q5_0 as int8 of 5.5 bits a weight; head Q6_K as int8"),
    gguf("q5_1", Dtype::int8, 6.0, "Q5_1 as int8 of 6.0 bits a weight; head Q6_K as int8"),
    gguf("q5_k_s", Dtype::int8, 5.5, "Q5_K_S as int8 of 5.5 bits a weight; head Q6_K as int8"),
    gguf("q5_k_m", Dtype::int8, 5.7, "Q5_K_M as int8 of 5.7 bits a weight; head Q6_K as int8"),
    gguf("q6_k", Dtype::int8, 6.5625, "Q6_K as int8 of 6.6 bits a weight"),
    gguf("q8_0", Dtype::int8, 8.5, "Q8_0 as int8 of 8.5 bits a weight"),
    {"gptq", {Dtype::int4, 128}, Dtype::f16, 0, "GPTQ as int4, 128 a group"},
    {"awq-int4", {Dtype::int4, 128}, Dtype::f16, 0, "AWQ as int4, 128 a group"},
    {"int4 (w4a16)", {Dtype::int4, 128}, Dtype::f16, 0, "int4 as 128 a group"},
    {"fp8 (channel)", {Dtype::fp8_e4m3, 0}, Dtype::bf16, 0, ""},
    {"awq", {Dtype::int4, 128}, Dtype::f16, 0, "AWQ as int4, 128 a group"},
    {"int4", {Dtype::int4, 32}, Dtype::bf16, 0, "int4 as 32 a group"},
    {"int8", {Dtype::int8, 0}, Dtype::int8, 0, ""},
}};

}  // namespace

double weight_scale(const PublishedWeights& weights) {
  if (weights.bits == 0) return 1;
  constexpr double kCount = 1 << 20;
  return weights.bits * kCount / 8 / weight_storage(weights.format, kCount).value();
}

PublishedWeights published_weights(const std::string& text) {
  const std::string name = lower_case(text);
  for (const PublishedWeights& known : kWeights)
    if (name == known.published) return known;
  try {
    const WeightFormat format = config::parse_weight_format(name == "fp16" ? "f16" : name);
    const bool narrow = bits(format.dtype) < 16;
    return {"", format, narrow ? Dtype::bf16 : format.dtype, 0, ""};
  } catch (const InputError&) {
    throw InputError("weights '" + text + "' have no format to predict them with");
  }
}

Dtype published_dtype(const std::string& text, Dtype otherwise) {
  if (text.empty()) return otherwise;
  const std::string name = lower_case(text);
  if (name == "fp16") return Dtype::f16;
  if (name == "q8_0") return Dtype::int8;
  if (const auto dtype = parse_dtype(name)) return *dtype;
  throw InputError("kv_dtype '" + text + "' has no format to predict it with");
}

bool is_quantized_gguf(std::string_view published) {
  return published.starts_with("q") || published.starts_with("iq") || published.starts_with("ud-q") ||
         published == "mxfp4";
}

}  // namespace dculab::study
