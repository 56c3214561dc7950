#include "config/key_description.hpp"

#include <array>

namespace dculab::config {

std::vector<std::string> dtype_words() {
  constexpr std::array kDtypes{Dtype::f32,   Dtype::f16,      Dtype::bf16,     Dtype::fp8_e4m3, Dtype::fp8_e5m2,
                               Dtype::int8,  Dtype::int4,     Dtype::int3,     Dtype::int2,     Dtype::kivi4,
                               Dtype::kivi2, Dtype::kvquant4, Dtype::kvquant3, Dtype::kvquant2, Dtype::mxfp4,
                               Dtype::nf4,   Dtype::fp4};
  std::vector<std::string> words;
  for (const Dtype dtype : kDtypes) words.emplace_back(name(dtype));
  return words;
}

namespace detail {

std::vector<FileValue> values_of(const KeyInfo& info, const Shape& shape) {
  std::vector<FileValue> values;
  if (const std::vector<std::string> words = shape.words.all(); !words.empty())
    values.push_back({.kind = ValueKind::word, .words = words});
  if (shape.is_text) values.push_back({.kind = ValueKind::text});
  if (shape.is_flag) values.push_back({.kind = ValueKind::flag});
  for (const auto& [is_one, kind] : {std::pair{shape.is_whole, ValueKind::whole}, {shape.is_number, ValueKind::number}})
    if (is_one) values.push_back({.kind = kind, .bounds = info.bounds, .unit = std::string(info.unit)});
  if (shape.is_counts)
    values.push_back({.kind = ValueKind::list, .items = {{.kind = ValueKind::whole, .bounds = info.bounds}}});
  const FileValue list{.kind = ValueKind::list, .items = values};
  if (shape.must_be_list) return {list};
  if (shape.may_be_list) values.push_back(list);
  return values;
}

}  // namespace detail
}  // namespace dculab::config
