// Filters and tests.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "engine/chat/template_functions.hpp"
#include "engine/chat/text_case.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine::chat {
namespace {

using Filter = Value (*)(const Value&, const Arguments&);
using Test = bool (*)(const Value&, const Arguments&);

struct NamedFilter {
  std::string_view name;
  Filter apply;
};
struct NamedTest {
  std::string_view name;
  Test apply;
};

[[nodiscard]] Value trim(const Value& value, const Arguments& arguments) {
  const Value characters = arguments.at(0, "chars");
  return stripped(text_of(value), characters.as<std::string>(), true, true);
}

[[nodiscard]] Value upper(const Value& value, const Arguments&) { return in_upper_case(text_of(value)); }
[[nodiscard]] Value lower(const Value& value, const Arguments&) { return in_lower_case(text_of(value)); }

// The first character of each word large, the others small.
[[nodiscard]] std::string titled(const std::string& text, std::string_view ends_of_words) {
  std::string result;
  bool begins = true;
  for (const std::string& each : characters_of(text)) {
    const bool is_end = !ends_of_words.empty() && (ends_of_words.find(each) != std::string_view::npos ||
                                                   is_python_space(first_unit(each).code_point));
    result += begins && !is_end ? in_upper_case(each) : in_lower_case(each);
    begins = is_end;
  }
  return result;
}

[[nodiscard]] Value capitalize(const Value& value, const Arguments&) { return titled(text_of(value), ""); }
[[nodiscard]] Value title(const Value& value, const Arguments&) { return titled(text_of(value), "-({[<"); }

[[nodiscard]] Value length(const Value& value, const Arguments&) {
  const Dict* dict = value.dict();
  return dict != nullptr ? std::int64_t{std::ssize(*dict)} : std::int64_t{std::ssize(items_of(value))};
}

[[nodiscard]] Value tojson(const Value& value, const Arguments& arguments) {
  const Value indent = arguments.at(0, "indent");
  return json_of(
      value, indent.as<std::int64_t>() ? static_cast<int>(std::min<std::int64_t>(*indent.as<std::int64_t>(), 64)) : 0);
}

[[nodiscard]] Value or_default(const Value& value, const Arguments& arguments) {
  const bool goes = value.is_undefined() || (is_true(arguments.at(1, "boolean")) && !is_true(value));
  const Value fallback = arguments.at(0, "default_value");
  return !goes ? value : fallback.is_undefined() ? Value("") : fallback;
}

// "function.name" of each.
[[nodiscard]] Value path_of(Value value, std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    if (const auto* undefined = value.as<Undefined>()) throw TemplateError("'" + undefined->name + "' is undefined");
    value = member(value, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return value;
}

[[nodiscard]] std::string name_argument(const Arguments& arguments, std::size_t index, const char* filter) {
  const auto* name = index < arguments.values.size() ? arguments.values[index].as<std::string>() : nullptr;
  if (name == nullptr) throw TemplateError(std::string(filter) + ": needs a name");
  return *name;
}

[[nodiscard]] Arguments behind(const Arguments& arguments, std::size_t count) {
  const auto first = arguments.values.begin() + static_cast<std::ptrdiff_t>(std::min(count, arguments.values.size()));
  return {.values = List(first, arguments.values.end()), .named = arguments.named};
}

[[nodiscard]] Value join(const Value& value, const Arguments& arguments) {
  const std::string between = text_of(arguments.at(0, "d"));
  const Value attribute = arguments.at(1, "attribute");
  std::string text;
  bool is_first = true;
  for (const Value& each : items_of(value)) {
    if (!std::exchange(is_first, false)) text += between;
    text += text_of(attribute.as<std::string>() ? path_of(each, *attribute.as<std::string>()) : each);
  }
  return text;
}

[[nodiscard]] Value map(const Value& value, const Arguments& arguments) {
  const Value attribute = arguments.at(arguments.values.size(), "attribute");
  List mapped;
  if (!is_true(value)) return mapped;
  for (const Value& each : items_of(value)) {
    if (attribute.as<std::string>()) {
      const Value found = path_of(each, *attribute.as<std::string>());
      const Value fallback = arguments.at(arguments.values.size(), "default");
      mapped.push_back(found.is_undefined() && !fallback.is_undefined() ? fallback : found);
      continue;
    }
    const std::string name = name_argument(arguments, 0, "map");
    if (!is_filter(name)) throw TemplateError("map: no filter " + name);
    mapped.push_back(filtered(name, each, behind(arguments, 1)));
  }
  return mapped;
}

// Those of whose attribute, or of which themselves, a test is `wanted`.
template <bool by_attribute, bool wanted>
[[nodiscard]] Value select(const Value& value, const Arguments& arguments) {
  constexpr std::size_t kTest = by_attribute ? 1 : 0;
  List kept;
  if (!is_true(value)) return kept;  // of none, too, as Jinja2's
  for (const Value& each : items_of(value)) {
    const Value looked_at = by_attribute ? path_of(each, name_argument(arguments, 0, "selectattr")) : each;
    const bool holds = arguments.values.size() <= kTest
                           ? is_true(looked_at)
                           : tested(name_argument(arguments, kTest, "select"), looked_at, behind(arguments, kTest + 1));
    if (holds == wanted) kept.push_back(each);
  }
  return kept;
}

[[nodiscard]] Value replace(const Value& value, const Arguments& arguments) {
  const Value old = arguments.at(0, "old"), fresh = arguments.at(1, "new"), count = arguments.at(2, "count");
  if (!old.as<std::string>() || !fresh.as<std::string>()) throw TemplateError("replace: needs two texts");
  const std::string text = text_of(value), &part = *old.as<std::string>();
  std::int64_t left = count.as<std::int64_t>() ? *count.as<std::int64_t>() : -1;
  if (part.empty()) throw TemplateError("replace: the text to be replaced is empty");
  std::string result;
  std::size_t at = 0;
  for (std::size_t found = 0; left != 0 && (found = text.find(part, at)) != std::string::npos; --left) {
    result.append(text, at, found - at).append(*fresh.as<std::string>());
    at = found + part.size();
  }
  return result.append(text, at);
}

[[nodiscard]] Value pairs(const Value& value, const Arguments&) {
  if (value.is_undefined()) return List{};
  if (value.dict() == nullptr) throw TemplateError("items: " + type_name(value) + " is no mapping");
  return called_method("items", value, {});
}

[[nodiscard]] Value sorted_pairs(const Value& value, const Arguments& arguments) {
  List sorted = *pairs(value, arguments).list();
  std::ranges::stable_sort(sorted, {}, [](const Value& pair) { return in_lower_case(text_of(pair.list()->front())); });
  return sorted;
}

[[nodiscard]] Value first(const Value& value, const Arguments&) {
  const List items = items_of(value);
  return items.empty() ? Value(Undefined{"first"}) : items.front();
}

[[nodiscard]] Value last(const Value& value, const Arguments&) {
  const List items = items_of(value);
  return items.empty() ? Value(Undefined{"last"}) : items.back();
}

[[nodiscard]] Value reversed(const Value& value, const Arguments&) {
  return sliced(value, None{}, None{}, std::int64_t{-1});
}

[[nodiscard]] Value to_integer(const Value& value, const Arguments& arguments) {
  if (value.is_number()) return static_cast<std::int64_t>(number_of(value));
  const std::string text = stripped(text_of(value), nullptr, true, true);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  const Value fallback = arguments.at(0, "default");
  return fallback.is_undefined() ? Value(std::int64_t{0}) : fallback;
}

[[nodiscard]] Value as_text(const Value& value, const Arguments&) { return text_of(value); }
[[nodiscard]] Value as_list(const Value& value, const Arguments&) { return items_of(value); }
[[nodiscard]] Value itself(const Value& value, const Arguments&) { return value; }

constexpr std::array<NamedFilter, 26> kFilters = {{{"trim", trim},
                                                   {"upper", upper},
                                                   {"lower", lower},
                                                   {"capitalize", capitalize},
                                                   {"title", title},
                                                   {"length", length},
                                                   {"count", length},
                                                   {"tojson", tojson},
                                                   {"default", or_default},
                                                   {"d", or_default},
                                                   {"join", join},
                                                   {"map", map},
                                                   {"select", select<false, true>},
                                                   {"reject", select<false, false>},
                                                   {"selectattr", select<true, true>},
                                                   {"rejectattr", select<true, false>},
                                                   {"replace", replace},
                                                   {"items", pairs},
                                                   {"dictsort", sorted_pairs},
                                                   {"first", first},
                                                   {"last", last},
                                                   {"reverse", reversed},
                                                   {"int", to_integer},
                                                   {"string", as_text},
                                                   {"list", as_list},
                                                   {"safe", itself}}};

[[nodiscard]] bool is_odd(const Value& value) {
  const auto* number = value.as<std::int64_t>();
  if (number == nullptr) throw TemplateError("odd, even: " + type_name(value) + " is no whole number");
  return *number % 2 != 0;
}

[[nodiscard]] bool has_items(const Value& value) {
  return value.is_undefined() || value.as<std::string>() || value.list() || value.dict();
}

const std::array<NamedTest, 23> kTests = {{
    {"defined", [](const Value& value, const Arguments&) { return !value.is_undefined(); }},
    {"undefined", [](const Value& value, const Arguments&) { return value.is_undefined(); }},
    {"none", [](const Value& value, const Arguments&) { return value.is_none(); }},
    {"string", [](const Value& value, const Arguments&) { return value.as<std::string>() != nullptr; }},
    {"number", [](const Value& value, const Arguments&) { return value.is_number(); }},
    {"integer", [](const Value& value, const Arguments&) { return value.as<std::int64_t>() != nullptr; }},
    {"float", [](const Value& value, const Arguments&) { return value.as<double>() != nullptr; }},
    {"boolean", [](const Value& value, const Arguments&) { return value.as<bool>() != nullptr; }},
    {"true", [](const Value& value, const Arguments&) { return value.as<bool>() && *value.as<bool>(); }},
    {"false", [](const Value& value, const Arguments&) { return value.as<bool>() && !*value.as<bool>(); }},
    {"mapping", [](const Value& value, const Arguments&) { return value.dict() != nullptr; }},
    {"sequence", [](const Value& value, const Arguments&) { return has_items(value); }},
    {"iterable", [](const Value& value, const Arguments&) { return has_items(value); }},
    {"callable", [](const Value& value, const Arguments&) { return value.as<const Macro*>() != nullptr; }},
    {"in", [](const Value& value, const Arguments& given) { return contains(given.at(0, "seq"), value); }},
    {"eq", [](const Value& value, const Arguments& given) { return equal(value, given.at(0, "b")); }},
    {"equalto", [](const Value& value, const Arguments& given) { return equal(value, given.at(0, "b")); }},
    {"==", [](const Value& value, const Arguments& given) { return equal(value, given.at(0, "b")); }},
    {"ne", [](const Value& value, const Arguments& given) { return !equal(value, given.at(0, "b")); }},
    {"!=", [](const Value& value, const Arguments& given) { return !equal(value, given.at(0, "b")); }},
    {"odd", [](const Value& value, const Arguments&) { return is_odd(value); }},
    {"even", [](const Value& value, const Arguments&) { return !is_odd(value); }},
    {"divisibleby",
     [](const Value& value, const Arguments& given) { return !is_true(calculated("%", value, given.at(0, "num"))); }},
}};

}  // namespace

bool is_filter(std::string_view name) {
  return !name.empty() && std::ranges::count(kFilters, name, &NamedFilter::name) > 0;
}
bool is_test(std::string_view name) { return !name.empty() && std::ranges::count(kTests, name, &NamedTest::name) > 0; }

Value filtered(std::string_view filter, const Value& value, const Arguments& arguments) {
  if (!is_filter(filter)) throw TemplateError(not_in_subset("the filter " + in_quotes(filter)));
  return std::ranges::find(kFilters, filter, &NamedFilter::name)->apply(value, arguments);
}

bool tested(std::string_view test, const Value& value, const Arguments& arguments) {
  if (!is_test(test)) throw TemplateError("no test " + std::string(test));
  return std::ranges::find(kTests, test, &NamedTest::name)->apply(value, arguments);
}

}  // namespace dculab::engine::chat
