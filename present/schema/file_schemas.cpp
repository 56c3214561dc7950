#include "present/schema/file_schemas.hpp"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "config/unit_text.hpp"

namespace dculab::present {
namespace {

using config::FileKey;
using config::FileValue;
using config::ValueKind;

[[nodiscard]] Json value_schema(const FileValue& value);

[[nodiscard]] Json bound(double number) {
  constexpr double kExact = 0x1p53;
  if (number == std::floor(number) && std::abs(number) <= kExact) return static_cast<std::int64_t>(number);
  return number;
}

void add_bounds(const Bounds& bounds, Json& schema) {
  if (std::isfinite(bounds.low))
    schema[bounds.low_end == LowEnd::included ? "minimum" : "exclusiveMinimum"] = bound(bounds.low);
  if (std::isfinite(bounds.high)) schema["maximum"] = bound(bounds.high);
}

[[nodiscard]] config::Dimension dimension_of(std::string_view unit) {
  for (const config::Unit& each : config::units())
    if (each.symbol == unit) return each.dimension;
  throw std::logic_error("no unit: " + std::string(unit));
}

// Of a number with a unit of the same dimension: "^[-+]?[0-9.]+([eE][-+]?[0-9]+)? *(ns|us|ms|s)$"
[[nodiscard]] std::string quantity_pattern(std::string_view unit) {
  const config::Dimension dimension = dimension_of(unit);
  std::string symbols;
  for (const config::Unit& each : config::units())
    if (each.dimension == dimension) symbols.append(symbols.empty() ? "" : "|").append(each.symbol);
  return "^[-+]?[0-9.]+([eE][-+]?[0-9]+)? *(" + symbols + ")$";
}

[[nodiscard]] Json number_schema(const char* type, const FileValue& value) {
  Json schema{{"type", type}};
  if (value.kind == ValueKind::quantity) schema["pattern"] = quantity_pattern(value.unit);
  if (!value.unit.empty()) schema["unit"] = value.unit;
  add_bounds(value.bounds, schema);
  return schema;
}

// A schema that any of the values meets.
[[nodiscard]] Json any_of(const std::vector<FileValue>& values) {
  if (values.size() == 1) return value_schema(values.front());
  Json all = Json::array();
  for (const FileValue& value : values) all.push_back(value_schema(value));
  return {{"anyOf", std::move(all)}};
}

// What holds where the key is left out, in the form of its value.
[[nodiscard]] Json standard_json(const FileKey& key) {
  const FileValue& value = key.values.front();
  const bool is_figure = value.kind == ValueKind::map && !value.keys.empty();
  const FileValue& form = is_figure ? value.keys.front().values.front() : value;
  if (form.kind == ValueKind::flag) return key.standard == "true";
  if (form.kind != ValueKind::whole && form.kind != ValueKind::number) return key.standard;
  double number = 0;
  std::from_chars(key.standard.data(), key.standard.data() + key.standard.size(), number);
  return bound(number);
}

[[nodiscard]] Json key_schema(const FileKey& key) {
  Json schema;
  if (!key.meaning.empty()) schema["description"] = key.meaning;
  if (!key.pattern.empty()) schema["key"] = key.key;
  const Json values = any_of(key.values);
  schema.update(values);
  if (!key.standard.empty()) schema["default"] = standard_json(key);
  if (!key.absent.empty()) schema["absent"] = key.absent;
  return schema;
}

[[nodiscard]] Json map_schema(const FileValue& value) {
  Json schema;
  if (!value.title.empty()) schema["title"] = value.title;
  schema["type"] = "object";
  Json required = Json::array();
  for (const FileKey& key : value.keys) {
    schema[key.pattern.empty() ? "properties" : "patternProperties"][key.pattern.empty() ? key.key : key.pattern] =
        key_schema(key);
    if (key.is_required && key.pattern.empty()) required.push_back(key.key);
  }
  schema["additionalProperties"] = false;
  if (!required.empty()) schema["required"] = std::move(required);
  if (value.one_of.empty()) return schema;
  Json alternatives = Json::array();
  for (const std::string& key : value.one_of) alternatives.push_back({{"required", Json::array({key})}});
  schema["anyOf"] = std::move(alternatives);
  return schema;
}

[[nodiscard]] Json value_schema(const FileValue& value) {
  switch (value.kind) {
    case ValueKind::text:
      return {{"type", "string"}};
    case ValueKind::word:
      return {{"enum", value.words}};
    case ValueKind::flag:
      return {{"type", "boolean"}};
    case ValueKind::whole:
      return number_schema("integer", value);
    case ValueKind::number:
      return number_schema("number", value);
    case ValueKind::quantity:
      return number_schema("string", value);
    case ValueKind::list:
      return {{"type", "array"}, {"items", any_of(value.items)}};
    case ValueKind::map:
      return map_schema(value);
    case ValueKind::scalar:
      return {{"type", Json::array({"string", "number", "boolean"})}};
  }
  return {};
}

}  // namespace

Json file_schema(const config::FileTree& tree) {
  Json schema{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", tree.id}, {"description", tree.meaning}};
  schema.update(any_of(tree.documents));
  return schema;
}

Json machine_schema() { return file_schema(config::machine_tree()); }
Json stack_schema() { return file_schema(config::stack_tree()); }
Json scenario_schema() { return file_schema(config::scenario_tree()); }
Json trace_schema() { return file_schema(config::trace_tree()); }

}  // namespace dculab::present
