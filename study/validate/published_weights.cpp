#include "study/validate/published_weights.hpp"

#include <algorithm>
#include <array>

#include "config/gguf_format.hpp"
#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "core/letter_case.hpp"

namespace dculab::study {
namespace {

constexpr std::array<PublishedWeights, 7> kWeights{{
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
  if (const config::GgufFormat* gguf = config::find_gguf_format(name))
    return {gguf->name, gguf->format, config::kGgufHead, gguf->bits, gguf->note};
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

}  // namespace dculab::study
