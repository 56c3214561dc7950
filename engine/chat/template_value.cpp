#include "engine/chat/template_value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fields/utf8.hpp"

namespace dculab::engine::chat {
namespace {

// repr() of a double: the shortest digits that give it back.
[[nodiscard]] std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char digits[40];
  const double size = std::abs(number);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number, format).ptr;
  std::string text(std::begin(digits), end);
  if (is_plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

[[nodiscard]] std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string written(1, quote);
  for (const char each : text) {
    if (each == quote || each == '\\') written += '\\';
    if (each == '\n')
      written += "\\n";
    else if (each == '\t')
      written += "\\t";
    else if (each == '\r')
      written += "\\r";
    else
      written += each;
  }
  return written + quote;
}

[[nodiscard]] std::string json_text(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string written = "\"";
  for (const char each : text) {
    const auto code = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\')
      written += {'\\', each};
    else if (each == '\n')
      written += "\\n";
    else if (each == '\t')
      written += "\\t";
    else if (each == '\r')
      written += "\\r";
    else if (each == '\b')
      written += "\\b";
    else if (each == '\f')
      written += "\\f";
    else if (code < 0x20)
      written += std::string("\\u00") + kHex[code >> 4] + kHex[code & 15];
    else
      written += each;
  }
  return written + '"';
}

// Items between brackets, each made by `write(index)`.
template <class Write>
[[nodiscard]] std::string bracketed(char open, char close, std::size_t count, int indent, int depth,
                                    const Write& write) {
  if (count == 0) return {open, close};
  const auto new_line = [indent](int level) {
    return indent > 0 ? "\n" + std::string(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level), ' ')
                      : std::string();
  };
  std::string written(1, open);
  for (std::size_t index = 0; index < count; ++index) {
    if (index > 0) written += indent > 0 ? "," : ", ";
    written += new_line(depth + 1) + write(index);
  }
  return written + new_line(depth) + close;
}

[[nodiscard]] std::string json_at(const Value& value, int indent, int depth) {
  if (value.is_none()) return "null";
  if (const auto* text = value.as<std::string>()) return json_text(*text);
  if (const auto* flag = value.as<bool>()) return *flag ? "true" : "false";
  if (value.is_number()) return text_of(value);
  if (const List* list = value.list())
    return bracketed('[', ']', list->size(), indent, depth,
                     [&](std::size_t index) { return json_at((*list)[index], indent, depth + 1); });
  if (const Dict* dict = value.dict())
    return bracketed('{', '}', dict->size(), indent, depth, [&](std::size_t index) {
      return json_text((*dict)[index].first) + ": " + json_at((*dict)[index].second, indent, depth + 1);
    });
  throw TemplateError("tojson: " + type_name(value) + " has no JSON");
}

[[nodiscard]] Value attribute_of(const Dict& dict, std::string_view name) {
  const auto found = std::ranges::find(dict, name, &Dict::value_type::first);
  return found == dict.end() ? Value(Undefined{std::string(name)}) : found->second;
}

[[nodiscard]] bool equal_dicts(const Dict& left, const Dict& right) {
  return left.size() == right.size() && std::ranges::all_of(left, [&right](const auto& entry) {
           const Value other = attribute_of(right, entry.first);
           return !other.is_undefined() && equal(entry.second, other);
         });
}

template <class T>
[[nodiscard]] int order_of(const T& left, const T& right) {
  return left < right ? -1 : right < left ? 1 : 0;
}

}  // namespace

std::string type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (value.as<bool>()) return "bool";
  if (value.as<std::int64_t>()) return "int";
  if (value.as<double>()) return "float";
  if (value.as<std::string>()) return "str";
  if (value.list()) return "list";
  if (value.dict()) return "dict";
  return value.space() ? "Namespace" : "Macro";
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is_number()) return number_of(value) != 0;
  if (const auto* text = value.as<std::string>()) return !text->empty();
  if (const List* list = value.list()) return !list->empty();
  if (const Dict* dict = value.dict()) return !dict->empty();
  return true;
}

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return number_of(left) == number_of(right);
  const auto *text = left.as<std::string>(), *other_text = right.as<std::string>();
  if (text && other_text) return *text == *other_text;
  if (left.list() && right.list()) return std::ranges::equal(*left.list(), *right.list(), equal);
  if (left.dict() && right.dict()) return equal_dicts(*left.dict(), *right.dict());
  if (left.space() || right.space()) return left.space() == right.space();
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

int compared(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return order_of(number_of(left), number_of(right));
  const auto *text = left.as<std::string>(), *other_text = right.as<std::string>();
  if (text && other_text) return order_of(*text, *other_text);
  if (left.list() && right.list()) {
    const List &one = *left.list(), &other = *right.list();
    for (std::size_t index = 0; index < std::min(one.size(), other.size()); ++index)
      if (!equal(one[index], other[index])) return compared(one[index], other[index]);
    return order_of(one.size(), other.size());
  }
  throw TemplateError(type_name(left) + " and " + type_name(right) + " have no order");
}

bool contains(const Value& container, const Value& item) {
  if (const auto* text = container.as<std::string>()) {
    const auto* part = item.as<std::string>();
    if (part == nullptr) throw TemplateError("in: a text is searched for a text, not for " + type_name(item));
    return text->find(*part) != std::string::npos;
  }
  const auto is_same = [&item](const Value& each) { return equal(each, item); };
  if (container.is_undefined()) return false;
  return std::ranges::any_of(items_of(container), is_same);
}

std::string text_of(const Value& value) {
  if (value.is_undefined()) return {};
  if (const auto* text = value.as<std::string>()) return *text;
  return written_text(value);
}

std::string written_text(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (const auto* flag = value.as<bool>()) return *flag ? "True" : "False";
  if (const auto* number = value.as<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = value.as<double>()) return number_text(*number);
  if (const auto* text = value.as<std::string>()) return quoted(*text);
  if (const List* list = value.list())
    return bracketed('[', ']', list->size(), 0, 0, [&](std::size_t index) { return written_text((*list)[index]); });
  if (const Dict* dict = value.dict())
    return bracketed('{', '}', dict->size(), 0, 0, [&](std::size_t index) {
      return quoted((*dict)[index].first) + ": " + written_text((*dict)[index].second);
    });
  throw TemplateError(type_name(value) + " has no text");
}

std::string json_of(const Value& value, int indent) { return json_at(value, indent, 0); }

double number_of(const Value& value) {
  if (const auto* flag = value.as<bool>()) return *flag ? 1 : 0;
  if (const auto* number = value.as<std::int64_t>()) return static_cast<double>(*number);
  return *value.as<double>();
}

Value member(const Value& value, std::string_view name) {
  if (const Dict* dict = value.dict()) return attribute_of(*dict, name);
  if (const Namespace* space = value.space()) return attribute_of(space->attributes, name);
  return Undefined{std::string(name)};
}

List items_of(const Value& value) {
  if (value.is_undefined()) return {};
  if (const List* list = value.list()) return *list;
  List items;
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, each] : *dict) items.emplace_back(key);
    return items;
  }
  const auto* text = value.as<std::string>();
  if (text == nullptr) throw TemplateError(type_name(value) + " has no items");
  for (std::string& character : characters_of(*text)) items.emplace_back(std::move(character));
  return items;
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const std::size_t size = first_unit(text).size;
    characters.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return characters;
}

bool is_python_space(char32_t character) {
  return (character >= 0x1C && character <= 0x1F) || is_white_space(character);
}

}  // namespace dculab::engine::chat
