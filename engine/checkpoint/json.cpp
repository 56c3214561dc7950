#include "engine/checkpoint/json.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

using nlohmann::json;

int line_at(std::string_view text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

// nlohmann's text begins with "[json.exception...] parse error at line 1, column 2: "; the reason follows.
std::string reason(const json::exception& error) {
  const std::string text = error.what();
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

}  // namespace

json parse_json(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;  // of each object that is open
  const auto refuse_duplicates = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) throw InputError(file, "key '" + key + "' stands twice in one JSON object");
    }
    return true;
  };
  try {
    return json::parse(text, refuse_duplicates);
  } catch (const json::parse_error& error) {
    throw InputError(file, line_at(text, error.byte == 0 ? 0 : error.byte - 1),
                     "is not valid JSON (" + reason(error) + ")");
  } catch (const json::out_of_range& error) {
    throw InputError(file, "is not valid JSON (" + reason(error) + ")");
  }
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, "cannot be opened");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) throw InputError(path, "cannot be read");
  return text;
}

JsonFields::JsonFields(std::string file, std::string text)
    : file_(std::move(file)), text_(std::move(text)), value_(parse_json(text_, file_)) {
  if (!value_.is_object()) throw InputError(file_, 1, "must be a JSON object");
}

JsonFields::JsonFields(std::string file, std::string text, json value)
    : file_(std::move(file)), text_(std::move(text)), value_(std::move(value)) {}

bool JsonFields::has(std::string_view key) const {
  const auto found = value_.find(key);
  return found != value_.end() && !found->is_null();
}

bool JsonFields::mentions(std::string_view key) const { return value_.contains(key); }

std::vector<std::string> JsonFields::keys() const {
  std::vector<std::string> names;
  for (const auto& entry : value_.items()) names.push_back(entry.key());
  return names;
}

const json& JsonFields::at(std::string_view key) const {
  if (!has(key)) throw InputError(file_, "'" + std::string(key) + "' is missing");
  return *value_.find(key);
}

int JsonFields::as_integer(std::string_view key, const json& value) const {
  if (!value.is_number_integer()) refuse(key, "must be an integer");
  const bool too_large =
      value.is_number_unsigned() ? value.get<std::uint64_t>() > kLimit : value.get<std::int64_t>() < -kLimit;
  if (too_large) refuse(key, "is out of range");
  return value.get<int>();
}

int JsonFields::integer(std::string_view key) const { return as_integer(key, at(key)); }
int JsonFields::integer(std::string_view key, int fallback) const { return has(key) ? integer(key) : fallback; }

double JsonFields::number(std::string_view key) const {
  const json& value = at(key);
  if (!value.is_number()) refuse(key, "must be a number");
  return value.get<double>();
}
double JsonFields::number(std::string_view key, double fallback) const { return has(key) ? number(key) : fallback; }

bool JsonFields::flag(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  if (!at(key).is_boolean()) refuse(key, "must be true or false");
  return at(key).get<bool>();
}

std::string JsonFields::text(std::string_view key, std::string_view fallback) const {
  if (!has(key)) return std::string(fallback);
  if (!at(key).is_string()) refuse(key, "must be a string");
  return at(key).get<std::string>();
}

std::vector<int> JsonFields::integers(std::string_view key) const {
  std::vector<int> result;
  if (!has(key)) return result;
  const json& value = at(key);
  if (!value.is_array()) return {as_integer(key, value)};
  for (const json& element : value) result.push_back(as_integer(key, element));
  return result;
}

std::vector<std::string> JsonFields::texts(std::string_view key) const {
  std::vector<std::string> result;
  if (!has(key)) return result;
  if (!at(key).is_array()) refuse(key, "must be a list");
  for (const json& element : at(key)) {
    if (!element.is_string()) refuse(key, "must be a list of strings");
    result.push_back(element.get<std::string>());
  }
  return result;
}

std::optional<JsonFields> JsonFields::object(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  if (!at(key).is_object()) refuse(key, "must be an object");
  return JsonFields(file_, text_, at(key));
}

void JsonFields::refuse(std::string_view key, const std::string& message) const {
  const std::string name(key);
  const auto offset = text_.find('"' + name + '"');
  if (offset == std::string::npos) throw InputError(file_, "'" + name + "' " + message);
  throw InputError(file_, line_at(text_, offset), "'" + name + "' " + message);
}

}  // namespace dculab::engine
