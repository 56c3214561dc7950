#include "fields/json_fields.hpp"

#include <utility>

#include "core/error.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"

namespace dculab {
namespace {

// Python writes Infinity, which JSON has not. In its place comes a number as long as the word, so that columns stay.
[[nodiscard]] std::string without_infinity(std::string_view text) {
  constexpr std::string_view kWord = "Infinity", kNumber = "1e308   ";
  std::string plain(text);
  bool is_quoted = false;
  for (std::size_t at = 0; at < plain.size(); ++at) {
    if (is_quoted && plain[at] == '\\')
      ++at;
    else if (plain[at] == '"')
      is_quoted = !is_quoted;
    else if (!is_quoted && plain.compare(at, kWord.size(), kWord) == 0)
      plain.replace(at, kWord.size(), kNumber);
  }
  return plain;
}

[[nodiscard]] const Node* find_inside(const Node& object, std::string_view key) {
  if (const Node* member = object.find(key)) return member;
  for (const Node& member : object.children)
    if (member.kind == NodeKind::map)
      if (const Node* found = find_inside(member, key)) return found;
  return nullptr;
}

}  // namespace

JsonFields::JsonFields(std::string file, std::string_view text) {
  Node root = parse_json(file, 1, without_infinity(text));
  if (root.kind != NodeKind::map) throw InputError(file, 1, "must be a JSON object");
  document_ = std::make_shared<const Document>(Document{std::move(file), std::move(root)});
  object_ = &document_->root;
}

bool JsonFields::has(std::string_view key) const {
  const Node* found = object_->find(key);
  return found != nullptr && found->kind != NodeKind::null;
}

bool JsonFields::mentions(std::string_view key) const { return object_->find(key) != nullptr; }

const Node& JsonFields::at(std::string_view key) const {
  const Node* found = object_->find(key);
  if (found == nullptr) refuse_absent(key, "is missing");
  if (found->kind == NodeKind::null) refuse(*found, "is null, and must be given");
  return *found;
}

int JsonFields::as_integer(const Node& member, const Node& value) const {
  if (!value.is(ScalarType::integer)) refuse(member, "must be an integer");
  const auto number = integer_of(value);
  if (!number || *number > kLimit || *number < -kLimit) refuse(member, "is out of range");
  return static_cast<int>(*number);
}

int JsonFields::integer(std::string_view key) const { return as_integer(at(key), at(key)); }
int JsonFields::integer(std::string_view key, int fallback) const { return has(key) ? integer(key) : fallback; }

double JsonFields::number(std::string_view key) const {
  const Node& value = at(key);
  if (!value.is(ScalarType::integer) && !value.is(ScalarType::real)) refuse(value, "must be a number");
  return number_of(value);
}
double JsonFields::number(std::string_view key, double fallback) const { return has(key) ? number(key) : fallback; }

bool JsonFields::flag(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  if (!at(key).is(ScalarType::flag)) refuse(key, "must be true or false");
  return at(key).text == "true";
}

std::string JsonFields::text(std::string_view key, std::string_view fallback) const {
  if (!has(key)) return std::string(fallback);
  if (!at(key).is(ScalarType::text)) refuse(key, "must be a string");
  return at(key).text;
}

std::vector<int> JsonFields::integers(std::string_view key) const {
  std::vector<int> result;
  if (!has(key)) return result;
  const Node& value = at(key);
  if (value.kind != NodeKind::list) return {as_integer(value, value)};
  for (const Node& element : value.children) result.push_back(as_integer(value, element));
  return result;
}

std::vector<double> JsonFields::numbers(std::string_view key) const {
  std::vector<double> result;
  if (!has(key)) return result;
  if (at(key).kind != NodeKind::list) refuse(key, "must be a list");
  for (const Node& element : at(key).children) {
    if (!element.is(ScalarType::integer) && !element.is(ScalarType::real)) refuse(key, "must be a list of numbers");
    result.push_back(number_of(element));
  }
  return result;
}

std::vector<std::string> JsonFields::texts(std::string_view key) const {
  std::vector<std::string> result;
  if (!has(key)) return result;
  if (at(key).kind != NodeKind::list) refuse(key, "must be a list");
  for (const Node& element : at(key).children) {
    if (!element.is(ScalarType::text)) refuse(key, "must be a list of strings");
    result.push_back(element.text);
  }
  return result;
}

std::optional<JsonFields> JsonFields::object(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  if (at(key).kind != NodeKind::map) refuse(key, "must be an object");
  return JsonFields(document_, at(key));
}

void JsonFields::refuse(std::string_view key, const std::string& message) const {
  if (const Node* member = object_->find(key)) refuse(*member, message);
  refuse_absent(key, message);
}

void JsonFields::refuse_absent(std::string_view key, const std::string& message) const {
  const std::string text = in_quotes(key) + " " + message;
  if (object_ == &document_->root) throw InputError(file(), text);
  throw InputError(file(), object_->key_place.line, object_->key + ": " + text);
}

std::optional<int> JsonFields::line_of(std::string_view key) const {
  const Node* found = find_inside(*object_, key);
  return found == nullptr ? std::nullopt : std::optional(found->key_place.line);
}

void JsonFields::refuse(const Node& member, const std::string& message) const {
  throw InputError(file(), member.key_place.line, in_quotes(member.key) + " " + message);
}

}  // namespace dculab
