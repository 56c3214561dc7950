// Methods of texts and dicts, and functions.
#include <algorithm>
#include <array>
#include <ctime>

#include "engine/chat/template_functions.hpp"
#include "engine/chat/text_case.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine::chat {
namespace {

constexpr std::array<std::string_view, 14> kTextMethods = {"strip",      "lstrip",   "rstrip",  "split", "rsplit",
                                                           "startswith", "endswith", "replace", "upper", "lower",
                                                           "capitalize", "find",     "count",   "join"};
constexpr std::array<std::string_view, 4> kDictMethods = {"get", "items", "keys", "values"};
constexpr std::array<std::string_view, 5> kFunctions = {"raise_exception", "namespace", "range", "dict",
                                                        "strftime_now"};

constexpr std::int64_t kMostNumbers = 1 << 20;  // of a range

[[nodiscard]] const std::string& text_argument(const Arguments& arguments, std::size_t index, std::string_view method) {
  const auto* text = index < arguments.values.size() ? arguments.values[index].as<std::string>() : nullptr;
  if (text == nullptr) throw TemplateError("the method " + std::string(method) + " needs a text");
  return *text;
}

[[nodiscard]] Value parts_of(const std::string& text, const Arguments& arguments, bool from_right) {
  const Value separator = arguments.at(0, "sep"), limit = arguments.at(1, "maxsplit");
  std::int64_t splits = limit.as<std::int64_t>() ? *limit.as<std::int64_t>() : -1;
  List parts;
  if (!separator.as<std::string>()) {
    if (splits >= 0) throw TemplateError("split: maxsplit needs a separator here");
    for (std::string& word : words_of(text)) parts.emplace_back(std::move(word));
    return parts;
  }
  const std::string& between = *separator.as<std::string>();
  if (between.empty()) throw TemplateError("split: the separator is empty");
  std::string_view rest = text;
  for (; splits != 0; --splits) {
    const std::size_t found = from_right ? rest.rfind(between) : rest.find(between);
    if (found == std::string_view::npos) break;
    const std::string_view before = rest.substr(0, found), after = rest.substr(found + between.size());
    parts.emplace_back(std::string(from_right ? after : before));
    rest = from_right ? before : after;
  }
  parts.emplace_back(std::string(rest));
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

// startswith, endswith: one of several, too.
template <class Holds>
[[nodiscard]] bool any_text(const Arguments& arguments, std::string_view method, const Holds& holds) {
  if (const List* list = arguments.at(0, "prefix").list())
    return std::ranges::any_of(
        *list, [&](const Value& each) { return each.as<std::string>() && holds(*each.as<std::string>()); });
  return holds(text_argument(arguments, 0, method));
}

[[nodiscard]] std::int64_t count_of(std::string_view text, std::string_view part) {
  std::int64_t count = 0;
  for (std::size_t at = 0; !part.empty() && (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++count;
  return part.empty() ? std::ssize(characters_of(text)) + 1 : count;
}

[[nodiscard]] Value found_in(const std::string& text, const std::string& part) {
  const std::size_t found = text.find(part);
  if (found == std::string::npos) return std::int64_t{-1};
  return std::int64_t{std::ssize(characters_of(std::string_view(text).substr(0, found)))};
}

[[nodiscard]] Value joined_with(const std::string& between, const Arguments& arguments) {
  std::string text;
  bool is_first = true;
  for (const Value& each : items_of(arguments.at(0, "iterable"))) {
    if (!each.as<std::string>()) throw TemplateError("join: " + type_name(each) + " is no text");
    if (!std::exchange(is_first, false)) text += between;
    text += *each.as<std::string>();
  }
  return text;
}

[[nodiscard]] Value text_method(std::string_view method, const std::string& text, const Arguments& arguments) {
  if (method == "strip" || method == "lstrip" || method == "rstrip") {
    const Value given = arguments.at(0, "chars");
    const auto* characters = given.as<std::string>();
    return stripped(text, characters == nullptr ? nullptr : characters, method != "rstrip", method != "lstrip");
  }
  if (method == "split" || method == "rsplit") return parts_of(text, arguments, method == "rsplit");
  if (method == "startswith")
    return any_text(arguments, method, [&](const std::string& each) { return text.starts_with(each); });
  if (method == "endswith")
    return any_text(arguments, method, [&](const std::string& each) { return text.ends_with(each); });
  if (method == "replace") return filtered("replace", text, arguments);
  if (method == "upper" || method == "lower" || method == "capitalize") return filtered(method, text, {});
  if (method == "find") return found_in(text, text_argument(arguments, 0, method));
  if (method == "count") return count_of(text, text_argument(arguments, 0, method));
  return joined_with(text, arguments);
}

[[nodiscard]] Value dict_method(std::string_view method, const Value& value, const Arguments& arguments) {
  if (method == "get") {
    const auto* key = arguments.values.empty() ? nullptr : arguments.values.front().as<std::string>();
    Value found = key == nullptr ? Value() : member(value, *key);
    if (!found.is_undefined()) return found;
    const Value fallback = arguments.at(1, "default");
    return fallback.is_undefined() ? Value(None{}) : fallback;
  }
  List items;
  for (const auto& [key, each] : *value.dict())
    items.push_back(method == "keys" ? Value(key) : method == "values" ? each : Value(List{key, each}));
  return items;
}

[[nodiscard]] Value numbers_of(const Arguments& arguments) {
  std::vector<std::int64_t> bounds;
  for (const Value& each : arguments.values) {
    if (!each.as<std::int64_t>()) throw TemplateError("range: " + type_name(each) + " is no whole number");
    bounds.push_back(*each.as<std::int64_t>());
  }
  if (bounds.empty() || bounds.size() > 3) throw TemplateError("range: needs one number to three");
  if (bounds.size() == 1) bounds.insert(bounds.begin(), 0);
  const std::int64_t step = bounds.size() == 3 ? bounds[2] : 1;
  if (step == 0) throw TemplateError("range: the step is 0");
  List numbers;
  for (std::int64_t at = bounds[0]; step > 0 ? at < bounds[1] : at > bounds[1]; at += step) {
    if (std::ssize(numbers) == kMostNumbers) throw TemplateError("range: more than a million numbers");
    numbers.emplace_back(at);
  }
  return numbers;
}

[[nodiscard]] Value time_now(const Arguments& arguments) {
  const std::string& format = text_argument(arguments, 0, "strftime_now");
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 256> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), format.c_str(), &parts));
}

}  // namespace

Value Arguments::at(std::size_t index, std::string_view name) const {
  if (index < values.size()) return values[index];
  const auto found = std::ranges::find(named, name, &Dict::value_type::first);
  return found == named.end() ? Value(Undefined{std::string(name)}) : found->second;
}

std::string not_in_subset(const std::string& construct) {
  return construct + " is not in the subset of Jinja that dculab reads (docs/howto/serve.md)";
}

bool is_method(std::string_view name) {
  return std::ranges::count(kTextMethods, name) > 0 || std::ranges::count(kDictMethods, name) > 0;
}

bool is_function(std::string_view name) { return std::ranges::count(kFunctions, name) > 0; }

Value called_method(std::string_view method, const Value& value, const Arguments& arguments) {
  const auto* text = value.as<std::string>();
  if (text != nullptr && std::ranges::count(kTextMethods, method) > 0) return text_method(method, *text, arguments);
  if (value.dict() != nullptr && std::ranges::count(kDictMethods, method) > 0)
    return dict_method(method, value, arguments);
  if (!is_method(method)) throw TemplateError(not_in_subset("the method " + in_quotes(method)));
  if (const auto* undefined = value.as<Undefined>()) throw TemplateError("'" + undefined->name + "' is undefined");
  throw TemplateError(type_name(value) + " has no method " + std::string(method));
}

Value called_function(std::string_view function, const Arguments& arguments) {
  if (function == "raise_exception") throw TemplateError(text_of(arguments.at(0, "message")));
  if (function == "range") return numbers_of(arguments);
  if (function == "strftime_now") return time_now(arguments);
  if (function == "dict") return arguments.named;
  auto space = std::make_shared<Namespace>();
  space->attributes = arguments.named;
  return space;
}

}  // namespace dculab::engine::chat
