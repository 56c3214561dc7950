// The JSON Schema (draft 2020-12) of what json_of() makes of a type.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "fields/field_list.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

// Schemas of values. Those of structs are kept aside, by their names, and referred to.
//
// Beside what the draft has, a number says its `unit`: "s", "B", "FLOP/s", "share" ... In an array or an object of
// numbers it is that of each.
class SchemaMaker {
 public:
  template <class T>
  [[nodiscard]] Json of();

  // Of a struct, in place: its keys, those that are always there, and no others.
  template <HasFields T>
  [[nodiscard]] Json object_of() {
    Json object = empty_object(FieldList<T>::doc);
    add_properties<T>(object, Presence::as_declared);
    return object;
  }

  // Of a document: an object whose `schema` is `id`; of a variant any of several, which have titles.
  template <class T>
  [[nodiscard]] Json document_of(std::string_view id);

  // `$defs` of all that was referred to.
  [[nodiscard]] const Json& definitions() const { return definitions_; }

 private:
  enum class Presence { as_declared, may_be_left_out };

  template <class T>
  static constexpr char kTag = 0;  // its address tells types apart

  [[nodiscard]] static Json empty_object(std::string_view doc);
  [[nodiscard]] static Json named(std::string_view title, const Json& schema);
  [[nodiscard]] static Json nullable(Json schema);
  [[nodiscard]] static Json property(std::string_view doc, std::string_view unit, const Words& words, Json schema);
  static void add_property(Json& object, std::string_view key, Json property, Presence presence);
  // False when the type has its definition. Throws std::logic_error when another type has the name.
  [[nodiscard]] bool define(const std::string& name, const char* tag);

  template <class T>
  [[nodiscard]] Json reference_to();
  template <class T>
  [[nodiscard]] Json list_of();
  template <class... Ts>
  [[nodiscard]] Json any_of(const std::variant<Ts...>*) {
    return {{"anyOf", Json::array({of<Ts>()...})}};
  }
  template <class... Ts>
  [[nodiscard]] Json any_document_of(std::string_view id, const std::variant<Ts...>*) {
    return {{"anyOf", Json::array({named(FieldList<Ts>::id, document_of<Ts>(id))...})}};
  }

  template <HasFields T>
  void add_properties(Json& object, Presence presence) {
    std::apply([&](const auto&... field) { (add<T>(field, object, presence), ...); }, FieldList<T>::fields);
  }
  template <class T, class Get>
  void add(const Field<Get>& field, Json& object, Presence presence);
  template <class T, class Get>
  void add(const Inlined<Get>& field, Json& object, Presence presence);
  template <class T, class Get>
  void add(const Keyed<Get>& field, Json& object, Presence presence);

  Json definitions_ = Json::object();
  std::map<std::string, const char*> defined_;
};

// The whole document, with what it refers to.
template <class T>
[[nodiscard]] Json document_schema(std::string_view id) {
  SchemaMaker maker;
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", id}};
  schema.update(maker.document_of<T>(id));
  if (!maker.definitions().empty()) schema["$defs"] = maker.definitions();
  return schema;
}

template <class T>
Json SchemaMaker::of() {
  if constexpr (HasFields<T>) {
    return reference_to<T>();
  } else if constexpr (detail::is_part<T>) {
    return of<typename T::Type>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_integral_v<T>) {
    return {{"type", "integer"}};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {{"type", "number"}};
  } else if constexpr (dculab::detail::is_quantity<T>) {
    return {{"type", "number"}, {"unit", unit_of<T>()}};
  } else if constexpr (dculab::detail::Text<T>) {
    return {{"type", "string"}};
  } else if constexpr (dculab::detail::is_or_null<T>) {
    return nullable(of<typename decltype(T::value)::value_type>());
  } else if constexpr (dculab::detail::is_interval<T>) {
    return {{"type", "array"}, {"items", of<decltype(T::low)>()}, {"minItems", 2}, {"maxItems", 2}};
  } else if constexpr (dculab::detail::is_variant<T>) {
    return any_of(static_cast<const T*>(nullptr));
  } else {
    return list_of<T>();
  }
}

template <class T>
Json SchemaMaker::document_of(std::string_view id) {
  if constexpr (dculab::detail::is_variant<T>) {
    return any_document_of(id, static_cast<const T*>(nullptr));
  } else {
    Json object = empty_object(FieldList<T>::doc);
    if (!csv_rows_of<T>().empty()) object["csv_rows"] = csv_rows_of<T>();
    add_property(object, "schema", {{"const", id}}, Presence::as_declared);
    add_properties<T>(object, Presence::as_declared);
    return object;
  }
}

template <class T>
Json SchemaMaker::reference_to() {
  const std::string name(FieldList<T>::id);
  if (define(name, &kTag<T>)) {
    definitions_[name] = nullptr;  // its place; one that refers to itself finds it defined
    Json object = object_of<T>();
    definitions_[name] = std::move(object);
  }
  return {{"$ref", "#/$defs/" + name}};
}

template <class T>
Json SchemaMaker::list_of() {
  using Element = std::ranges::range_value_t<T>;
  if constexpr (dculab::detail::Members<T>)
    return {{"type", "object"}, {"additionalProperties", of<std::remove_cvref_t<decltype(Element::second)>>()}};
  else
    return {{"type", "array"}, {"items", of<Element>()}};
}

template <class T, class Get>
void SchemaMaker::add(const Field<Get>& field, Json& object, Presence presence) {
  using Value = dculab::detail::ValueOf<T, Get>;
  const Words words = field.allowed.all();
  if constexpr (dculab::detail::is_optional<Value>)
    add_property(object, field.key, property(field.doc, field.unit, words, of<typename Value::value_type>()),
                 Presence::may_be_left_out);
  else
    add_property(object, field.key, property(field.doc, field.unit, words, of<Value>()), presence);
}

template <class T, class Get>
void SchemaMaker::add(const Inlined<Get>&, Json& object, Presence presence) {
  using Value = dculab::detail::ValueOf<T, Get>;
  if constexpr (dculab::detail::is_optional<Value>)
    add_properties<typename Value::value_type>(object, Presence::may_be_left_out);
  else
    add_properties<Value>(object, presence);
}

template <class T, class Get>
void SchemaMaker::add(const Keyed<Get>& field, Json& object, Presence) {
  using Element = std::ranges::range_value_t<dculab::detail::ValueOf<T, Get>>;
  const Json schema = of<std::remove_cvref_t<decltype(Element::second)>>();
  for (const DataKey& each : field.keys())
    add_property(object, each.key, property(each.doc, each.unit, {}, schema), Presence::may_be_left_out);
}

}  // namespace dculab::present
