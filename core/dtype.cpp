#include "core/dtype.hpp"

#include <array>
#include <string>
#include <utility>

#include "core/kv/kivi.hpp"
#include "core/kv/kvquant.hpp"
#include "core/letter_case.hpp"

namespace dculab {
namespace {

// First spelling of each format is its short name.
constexpr std::array<std::pair<std::string_view, Dtype>, 25> kSpellings{{
    {"f32", Dtype::f32},           {"f16", Dtype::f16},           {"bf16", Dtype::bf16},
    {"fp8_e4m3", Dtype::fp8_e4m3}, {"fp8_e5m2", Dtype::fp8_e5m2}, {"int8", Dtype::int8},
    {"int4", Dtype::int4},         {"int3", Dtype::int3},         {"int2", Dtype::int2},
    {"kivi4", Dtype::kivi4},       {"kivi2", Dtype::kivi2},       {"mxfp4", Dtype::mxfp4},
    {"nf4", Dtype::nf4},           {"fp4", Dtype::fp4},           {"float32", Dtype::f32},
    {"fp32", Dtype::f32},          {"float", Dtype::f32},         {"float16", Dtype::f16},
    {"fp16", Dtype::f16},          {"half", Dtype::f16},          {"bfloat16", Dtype::bf16},
    {"fp8", Dtype::fp8_e4m3},      {"kvquant4", Dtype::kvquant4}, {"kvquant3", Dtype::kvquant3},
    {"kvquant2", Dtype::kvquant2},
}};

}  // namespace

std::string_view name(Dtype dtype) {
  for (const auto& [spelling, value] : kSpellings)
    if (value == dtype) return spelling;
  return "?";
}

std::optional<Dtype> parse_dtype(std::string_view text) {
  constexpr std::string_view kTorch = "torch.";
  const std::string written = lower_case(text.substr(text.starts_with(kTorch) ? kTorch.size() : 0));
  for (const auto& [spelling, value] : kSpellings)
    if (spelling == written) return value;
  return std::nullopt;
}

Bytes weight_storage(WeightFormat format, double count) {
  constexpr double kScalesOfOne = 256;  // bytes that share an F32
  const Bytes values = storage(format.dtype, count);
  if (format.group_size <= 0) return values;
  const double groups = count / format.group_size;
  switch (format.scales) {
    case ScaleFormat::f16_and_zero_point:
      return values + storage(Dtype::f16, groups) + storage(format.dtype, groups);
    case ScaleFormat::f32:
      return values + storage(Dtype::f32, groups);
    case ScaleFormat::f32_of_bytes:
      return values + Bytes(groups) + storage(Dtype::f32, groups / kScalesOfOne);
    case ScaleFormat::e8m0:
      return values + Bytes(groups);
  }
  return values;
}

Bytes kv_storage(Dtype dtype, double count, int head_dim, int kv_heads) {
  const Bytes values = storage(dtype, count);
  switch (dtype) {
    case Dtype::int8:
      return values + storage(Dtype::f32, count / head_dim);
    case Dtype::kivi4:
    case Dtype::kivi2:
      return values + storage(Dtype::f16, 2 * count / kKiviGroup);
    case Dtype::kvquant4:
    case Dtype::kvquant3:
    case Dtype::kvquant2: {
      const int width = kv_heads * head_dim;
      const double rows = count / width;  // of K and of V
      return values + Bytes(rows * kvquant_outliers(width) * kKvQuantOutlierBytes + rows / 2 * kKvQuantScaleBytes);
    }
    default:
      return values;
  }
}

}  // namespace dculab
