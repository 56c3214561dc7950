// One list of fields per struct: key, one line of documentation, unit, where the value comes from. Whatever is made of
// the struct follows from the list: its JSON (present/output/field_json.hpp), the schema of that
// (present/schema/json_schema.hpp), its CSV (present/output/field_csv.hpp).
//
//   template <>
//   struct FieldList<Step> {
//     static constexpr std::string_view id = "step";  // in schemas: a name of its own
//     static constexpr std::string_view doc = "A step and its price.";
//     static constexpr auto fields = std::tuple(
//         field("seconds", "without the host", &Step::time),                   // Seconds: the unit is "s"
//         field("share", "of the host", unit::share, [](const Step& step) { return step.host / step.time; }),
//         field("phase", "what it does", one_of("prefill", "decode"), &Step::phase),
//         field("batch_limit", "what ends the batch", &Step::limit));          // an optional: may be left out
//   };
//
// The list of an answer also says which of its lists CSV has: `csv_rows = "machines[machine].points"`, the points of
// each machine, each with the machine's `machine`; `"pareto|best"`: the first of these that the answer has. Without
// `rows` the answer itself is the one row.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/units.hpp"

namespace dculab {

// Units of bare numbers; a Quantity brings its own.
namespace unit {
inline constexpr std::string_view bytes = "B";
inline constexpr std::string_view seconds = "s";
inline constexpr std::string_view flop = "FLOP";
inline constexpr std::string_view joules = "J";
inline constexpr std::string_view tokens = "tokens";
inline constexpr std::string_view tokens_per_second = "tokens/s";
inline constexpr std::string_view requests_per_second = "requests/s";
inline constexpr std::string_view count = "count";  // of whatever the field names
inline constexpr std::string_view share = "share";  // of a whole: 0.1 is 10 %; a change has a sign
inline constexpr std::string_view usd = "USD";
inline constexpr std::string_view ratio = "ratio";  // of two values with one unit: 2 is twice as much
}  // namespace unit

// The specialisations are beside what shows the structs.
template <class T>
struct FieldList;

template <class T>
concept HasFields = requires {
  FieldList<T>::fields;
};

// FieldList<T>::csv_rows, where there is one.
template <HasFields T>
[[nodiscard]] constexpr std::string_view csv_rows_of() {
  if constexpr (requires { FieldList<T>::csv_rows; }) return FieldList<T>::csv_rows;
  return {};
}

using Words = std::vector<std::string>;

// All that a text may be: a few words, or the names of an enum; neither: anything.
struct Allowed {
  std::array<std::string_view, 6> words{};
  Words (*names)() = nullptr;

  [[nodiscard]] Words all() const {
    Words listed = names == nullptr ? Words{} : names();
    for (const std::string_view word : words)
      if (!word.empty()) listed.emplace_back(word);
    return listed;
  }
};

// A key and its value. A value that is an empty std::optional is left out with its key.
template <class Get>
struct Field {
  std::string_view key;
  std::string_view doc;
  std::string_view unit;
  Allowed allowed;
  Get get;  // a member, or a function of the struct
};

// The fields of another struct, among those of this one. Nothing of an empty std::optional.
template <class Get>
struct Inlined {
  Get get;
};

// A key that is data, such as the name of a metric.
struct DataKey {
  std::string key;
  std::string unit;
  std::string doc;
};

// Pairs of a key and a value, among the fields of this struct. Each may be left out.
template <class Get>
struct Keyed {
  std::vector<DataKey> (*keys)();  // all that there may be
  Get get;
};

template <class Get>
constexpr Field<Get> field(std::string_view key, std::string_view doc, Get get) {
  return {key, doc, {}, {}, get};
}

template <class Get>
constexpr Field<Get> field(std::string_view key, std::string_view doc, std::string_view unit, Get get) {
  return {key, doc, unit, {}, get};
}

template <class Get>
constexpr Field<Get> field(std::string_view key, std::string_view doc, const Allowed& allowed, Get get) {
  return {key, doc, {}, allowed, get};
}

template <class Get>
constexpr Inlined<Get> inlined(Get get) {
  return {get};
}

template <class Get>
constexpr Keyed<Get> keyed(std::vector<DataKey> (*keys)(), Get get) {
  return {keys, get};
}

template <class... Texts>
[[nodiscard]] constexpr Allowed one_of(Texts... words) {
  return {.words = {words...}};
}

// name() of every value of an enum whose values count from 0 to `Last`.
template <auto Last>
[[nodiscard]] constexpr Allowed names_up_to() {
  return {.names = [] {
    Words words;
    for (int value = 0; value <= static_cast<int>(Last); ++value)
      words.emplace_back(name(static_cast<decltype(Last)>(value)));
    return words;
  }};
}

// A value that is null where there is none; its key stays.
template <class T>
struct OrNull {
  std::optional<T> value;
};

template <class T>
[[nodiscard]] OrNull<T> or_null(std::optional<T> value) {
  return {std::move(value)};
}

// Two ends: [low, high].
template <class T>
struct Interval {
  T low{}, high{};
};

template <class T>
[[nodiscard]] constexpr Interval<T> interval(T low, T high) {
  return {low, high};
}

// make(), where `holds`.
template <class Make>
[[nodiscard]] auto when(bool holds, const Make& make) -> std::optional<std::decay_t<std::invoke_result_t<Make>>> {
  if (!holds) return std::nullopt;
  return make();
}

// A list, where it has something.
template <class T>
[[nodiscard]] std::optional<T> unless_empty(T list) {
  if (list.empty()) return std::nullopt;
  return list;
}

// How the types of values are told apart.
namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_or_null = false;
template <class T>
inline constexpr bool is_or_null<OrNull<T>> = true;

template <class T>
inline constexpr bool is_interval = false;
template <class T>
inline constexpr bool is_interval<Interval<T>> = true;

template <class T>
inline constexpr bool is_variant = false;
template <class... Ts>
inline constexpr bool is_variant<std::variant<Ts...>> = true;

template <class T>
inline constexpr bool is_quantity = false;
template <int B, int S, int F, int C, int J>
inline constexpr bool is_quantity<Quantity<B, S, F, C, J>> = true;

template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

template <class T>
concept List = std::ranges::range<const T> && !Text<T>;

// A list of pairs whose first is a text: an object with those keys.
template <class T>
concept Members = List<T> && requires(const std::ranges::range_value_t<T>& member) {
  { member.first } -> Text;
  member.second;
};

template <class T, class Get>
using ValueOf = std::remove_cvref_t<std::invoke_result_t<const Get&, const T&>>;

}  // namespace detail

// "s", "B/s", "FLOP/s": of a quantity.
template <class T>
[[nodiscard]] constexpr std::string_view unit_of() {
  if constexpr (std::is_same_v<T, Bytes>) return unit::bytes;
  if constexpr (std::is_same_v<T, Seconds>) return unit::seconds;
  if constexpr (std::is_same_v<T, FlopCount>) return unit::flop;
  if constexpr (std::is_same_v<T, Cycles>) return "cycles";
  if constexpr (std::is_same_v<T, BytesPerSecond>) return "B/s";
  if constexpr (std::is_same_v<T, FlopsPerSecond>) return "FLOP/s";
  if constexpr (std::is_same_v<T, FlopsPerByte>) return "FLOP/B";
  if constexpr (std::is_same_v<T, Hertz>) return "Hz";
  if constexpr (std::is_same_v<T, Joules>) return unit::joules;
  if constexpr (std::is_same_v<T, Watts>) return "W";
  return {};
}

}  // namespace dculab
