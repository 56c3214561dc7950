// Which rows and columns the CSV of an answer has, as the lists of its fields say (fields/field_list.hpp).
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "present/output/field_json.hpp"

namespace dculab::present {

// What json_of() of a T is to CSV.
template <class T>
[[nodiscard]] CsvShape csv_shape();

// The rows of an answer: FieldList<T>::csv_rows, or the answer itself. Throws std::logic_error where `rows` names a key
// that there is not.
template <HasFields T>
[[nodiscard]] CsvAnswer csv_answer();

namespace detail {

using CsvSteps = std::span<const CsvPathStep>;

template <HasFields T>
void add_csv_parts(std::vector<CsvShape>& parts);

template <class T>
struct Present {
  using Type = T;
};
template <class T>
struct Present<std::optional<T>> {
  using Type = T;
};
template <class T>
struct Present<OrNull<T>> {
  using Type = T;
};
// Of a field, which may be absent or null.
template <class T, class Get>
using PresentOf = typename Present<dculab::detail::ValueOf<T, Get>>::Type;

template <class T, class Get>
void add_csv_part(const Field<Get>& field, std::vector<CsvShape>& parts) {
  CsvShape part = csv_shape<PresentOf<T, Get>>();
  part.key = field.key;
  parts.push_back(std::move(part));
}

template <class T, class Get>
void add_csv_part(const Inlined<Get>&, std::vector<CsvShape>& parts) {
  add_csv_parts<PresentOf<T, Get>>(parts);
}

template <class T, class Get>
void add_csv_part(const Keyed<Get>& field, std::vector<CsvShape>& parts) {
  using Element = std::ranges::range_value_t<dculab::detail::ValueOf<T, Get>>;
  CsvShape part{CsvShape::Kind::keyed, {}, {csv_shape<std::remove_cvref_t<decltype(Element::second)>>()}, {}};
  for (const DataKey& each : field.keys()) part.keys.push_back(each.key);
  parts.push_back(std::move(part));
}

template <HasFields T>
void add_csv_parts(std::vector<CsvShape>& parts) {
  std::apply([&](const auto&... field) { (add_csv_part<T>(field, parts), ...); }, FieldList<T>::fields);
}

template <class T>
[[nodiscard]] CsvShape csv_list_shape() {
  using Element = std::ranges::range_value_t<T>;
  if constexpr (dculab::detail::Members<T>)
    return {CsvShape::Kind::members, {}, {csv_shape<std::remove_cvref_t<decltype(Element::second)>>()}, {}};
  else if constexpr (HasFields<Element> || is_part<Element> || dculab::detail::is_variant<Element> ||
                     dculab::detail::is_interval<Element> || dculab::detail::List<Element>)
    return {CsvShape::Kind::none};
  else
    return {CsvShape::Kind::list};
}

// Numbers or texts are a value; of structs a row has the keys of each.
template <class... Ts>
[[nodiscard]] CsvShape csv_shape_of_any(const std::variant<Ts...>*) {
  CsvShape all;
  for (const CsvShape& each : {csv_shape<Ts>()...}) {
    all.kind = each.kind;
    all.parts.insert(all.parts.end(), each.parts.begin(), each.parts.end());
  }
  return all;
}

// Follows the steps to the rows through the types of an answer.
class CsvFinder {
 public:
  explicit CsvFinder(CsvRows& rows) : rows_(rows) {}

  // Whether a T, or what it has, has the keys of the steps.
  template <HasFields T>
  [[nodiscard]] bool find(CsvSteps steps) {
    return std::apply([&](const auto&... field) { return (enter<T>(field, steps) || ...); }, FieldList<T>::fields);
  }

 private:
  template <class T, class Get>
  [[nodiscard]] bool enter(const Field<Get>& field, CsvSteps steps) {
    return field.key == steps.front().key && enter_list<PresentOf<T, Get>>(steps);
  }
  template <class T, class Get>
  [[nodiscard]] bool enter(const Inlined<Get>&, CsvSteps steps) {
    return find<PresentOf<T, Get>>(steps);
  }
  template <class T, class Get>
  [[nodiscard]] bool enter(const Keyed<Get>&, CsvSteps) {
    return false;
  }

  template <class Value>
  [[nodiscard]] bool enter_list(CsvSteps steps) {
    if constexpr (is_part<Value>) {
      return enter_list<typename Value::Type>(steps);
    } else if constexpr (dculab::detail::Members<Value>) {
      return enter_items<std::remove_cvref_t<decltype(std::ranges::range_value_t<Value>::second)>>(steps, true);
    } else if constexpr (dculab::detail::List<Value>) {
      return enter_items<std::ranges::range_value_t<Value>>(steps, false);
    } else {
      return false;
    }
  }

  template <class Item>
  [[nodiscard]] bool enter_items(CsvSteps steps, bool is_members) {
    if constexpr (is_part<Item>) {
      return enter_items<typename Item::Type>(steps, is_members);
    } else {
      CsvStep& step = rows_.steps.emplace_back(CsvStep{steps.front().key, is_members});
      CsvShape item = csv_shape<Item>();
      if (steps.size() == 1) {
        rows_.row = std::move(item);
        return true;
      }
      for (const std::string& key : steps.front().repeated)
        step.repeated.push_back(*std::ranges::find(item.parts, key, &CsvShape::key));
      if constexpr (HasFields<Item>) return find<Item>(steps.subspan(1));
      return false;
    }
  }

  CsvRows& rows_;
};

}  // namespace detail

template <class T>
CsvShape csv_shape() {
  using Kind = CsvShape::Kind;
  if constexpr (HasFields<T>) {
    CsvShape shape{Kind::object};
    detail::add_csv_parts<T>(shape.parts);
    return shape;
  } else if constexpr (detail::is_part<T>) {
    return csv_shape<typename T::Type>();
  } else if constexpr (dculab::detail::is_interval<T>) {
    return {Kind::interval};
  } else if constexpr (dculab::detail::is_variant<T>) {
    return detail::csv_shape_of_any(static_cast<const T*>(nullptr));
  } else if constexpr (dculab::detail::List<T>) {
    return detail::csv_list_shape<T>();
  } else if constexpr (dculab::detail::is_or_null<T>) {
    return csv_shape<typename detail::Present<T>::Type>();
  } else {
    return {Kind::value};
  }
}

template <HasFields T>
CsvAnswer csv_answer() {
  CsvAnswer answer;
  const std::string_view paths = csv_rows_of<T>();
  if (paths.empty()) {
    answer.ways.push_back({{}, csv_shape<T>()});
    return answer;
  }
  for (const std::vector<CsvPathStep>& path : csv_paths(paths))
    if (!detail::CsvFinder(answer.ways.emplace_back()).template find<T>(path))
      throw std::logic_error(std::string(FieldList<T>::id) + " has no rows at " + std::string(paths));
  return answer;
}

// A report of an answer; its tables are added.
template <HasFields T>
[[nodiscard]] Report report_of(std::string_view schema, const T& answer, std::vector<std::string> heading = {}) {
  return {std::string(schema), std::move(heading), {}, json_of(answer), {csv_answer<T>()}};
}

// Adds an answer to a report that has something else to say, too.
template <HasFields T>
void set_answer(const T& answer, Report& report) {
  report.json.update(json_of(answer));
  report.answers = {csv_answer<T>()};
}

}  // namespace dculab::present
