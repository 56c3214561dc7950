#include "present/schema/json_schema.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dculab::present {

Json SchemaMaker::empty_object(std::string_view doc) {
  return {{"type", "object"},
          {"description", doc},
          {"properties", Json::object()},
          {"required", Json::array()},
          {"additionalProperties", false}};
}

Json SchemaMaker::named(std::string_view title, const Json& schema) {
  Json json{{"title", title}};
  json.update(schema);
  return json;
}

Json SchemaMaker::nullable(Json schema) {
  if (const auto type = schema.find("type"); type != schema.end() && type->is_string())
    *type = Json::array({*type, "null"});
  else
    schema = {{"anyOf", Json::array({std::move(schema), Json{{"type", "null"}}})}};
  return schema;
}

Json SchemaMaker::property(std::string_view doc, std::string_view unit, const Words& words, Json schema) {
  Json json{{"description", doc}};
  json.update(schema);
  if (!unit.empty()) json["unit"] = unit;
  if (words.empty()) return json;
  json["enum"] = words;
  if (schema["type"].is_array()) json["enum"].push_back(nullptr);
  return json;
}

void SchemaMaker::add_property(Json& object, std::string_view key, Json property, Presence presence) {
  object["properties"][std::string(key)] = std::move(property);
  Json& required = object["required"];
  if (presence == Presence::as_declared && std::ranges::find(required, key) == required.end()) required.push_back(key);
}

bool SchemaMaker::define(const std::string& name, const char* tag) {
  const auto [known, is_new] = defined_.try_emplace(name, tag);
  if (known->second != tag) throw std::logic_error("two structs with fields are named '" + name + "'");
  return is_new;
}

}  // namespace dculab::present
