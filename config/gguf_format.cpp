#include "config/gguf_format.hpp"

#include <algorithm>
#include <array>

#include "core/letter_case.hpp"

namespace dculab::config {
namespace {

// Bits of a block as ggml-common.h has them. The mixes hold half of attn_v and ffn_down in the next larger format
// (llama_tensor_get_type), 14 % of a layer's weights, and Q3_K_L also attn_output; those of IQ1 to IQ3 are what
// llama-quantize prints.
constexpr GgufFormat gguf(std::string_view name, Dtype dtype, double bits, std::string_view note) {
  return {name, {dtype, 32}, bits, note};
}
constexpr std::array<GgufFormat, 30> kFormats{{
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
}};

}  // namespace

const GgufFormat* find_gguf_format(const std::string& name) {
  const std::string written = lower_case(name);
  const auto* found = std::ranges::find(kFormats, written, &GgufFormat::name);
  return found == kFormats.end() ? nullptr : found;
}

}  // namespace dculab::config
