// JSON of a value, as the list of its fields says (fields/field_list.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fields/field_list.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// Structs that have a list become objects in its order, Intervals and lists arrays, lists of pairs objects with those
// keys, Quantities their number.
template <class T>
[[nodiscard]] Json json_of(const T& value);

// JSON of a T, made while what it refers to was there.
template <class T>
struct Part {
  using Type = T;
  Part(const T& value) : json(json_of(value)) {}

  Json json;
};

// A document with warnings, which add_warnings() has written where there are any.
template <class T>
struct Warned {
  T answer;
  std::optional<std::vector<std::string>> warnings;
};

// A document with a conclusion, which conclude() has written.
template <class T>
struct Concluded {
  T answer;
  std::optional<std::vector<std::string>> conclusion;
};

namespace detail {

template <class T>
inline constexpr bool is_part = false;
template <class T>
inline constexpr bool is_part<Part<T>> = true;

template <HasFields T>
void add_fields(const T& value, Json& json);

template <class T, class Get>
void add_field(const T& value, const Field<Get>& field, Json& json) {
  const auto& found = std::invoke(field.get, value);
  if constexpr (dculab::detail::is_optional<std::remove_cvref_t<decltype(found)>>) {
    if (found) json[std::string(field.key)] = json_of(*found);
  } else {
    json[std::string(field.key)] = json_of(found);
  }
}

template <class T, class Get>
void add_field(const T& value, const Inlined<Get>& field, Json& json) {
  const auto& found = std::invoke(field.get, value);
  if constexpr (dculab::detail::is_optional<std::remove_cvref_t<decltype(found)>>) {
    if (found) add_fields(*found, json);
  } else {
    add_fields(found, json);
  }
}

template <class T, class Get>
void add_field(const T& value, const Keyed<Get>& field, Json& json) {
  const auto& members = std::invoke(field.get, value);
  for (const auto& [key, member] : members) json[std::string(key)] = json_of(member);
}

template <HasFields T>
void add_fields(const T& value, Json& json) {
  std::apply([&](const auto&... field) { (add_field(value, field, json), ...); }, FieldList<T>::fields);
}

template <dculab::detail::List T>
[[nodiscard]] Json list_json(const T& list) {
  if constexpr (dculab::detail::Members<T>) {
    Json json = Json::object();
    for (const auto& [key, value] : list) json[std::string(key)] = json_of(value);
    return json;
  } else {
    Json json = Json::array();
    for (const std::ranges::range_value_t<T>& each : list) json.push_back(json_of(each));
    return json;
  }
}

}  // namespace detail

template <class T>
Json json_of(const T& value) {
  if constexpr (HasFields<T>) {
    Json json = Json::object();
    detail::add_fields(value, json);
    return json;
  } else if constexpr (detail::is_part<T>) {
    return value.json;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return Json(value);
  } else if constexpr (dculab::detail::Text<T>) {
    return Json(std::string(std::string_view(value)));
  } else if constexpr (dculab::detail::is_quantity<T>) {
    return Json(value.value());
  } else if constexpr (dculab::detail::is_or_null<T>) {
    return value.value ? json_of(*value.value) : Json(nullptr);
  } else if constexpr (dculab::detail::is_interval<T>) {
    return Json::array({json_of(value.low), json_of(value.high)});
  } else if constexpr (dculab::detail::is_variant<T>) {
    return std::visit([](const auto& each) { return json_of(each); }, value);
  } else {
    return detail::list_json(value);
  }
}

}  // namespace dculab::present

namespace dculab {

template <class T>
struct FieldList<present::Warned<T>> {
  static constexpr std::string_view id = FieldList<T>::id;
  static constexpr std::string_view doc = FieldList<T>::doc;
  static constexpr std::string_view csv_rows = csv_rows_of<T>();
  static constexpr auto fields =
      std::tuple(inlined(&present::Warned<T>::answer),
                 field("warnings", "what makes the figures less than they seem", &present::Warned<T>::warnings));
};

template <class T>
struct FieldList<present::Concluded<T>> {
  static constexpr std::string_view id = FieldList<T>::id;
  static constexpr std::string_view doc = FieldList<T>::doc;
  static constexpr std::string_view csv_rows = csv_rows_of<T>();
  static constexpr auto fields =
      std::tuple(inlined(&present::Concluded<T>::answer),
                 field("conclusion", "the answer in sentences", &present::Concluded<T>::conclusion));
};

}  // namespace dculab
