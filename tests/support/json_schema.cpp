#include "tests/support/json_schema.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace dculab::test {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 6> kAnnotations{"$schema", "$defs", "title", "description", "unit", "csv_rows"};

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  [[nodiscard]] std::vector<std::string> errors(const Json& schema, const Json& value) {
    errors_.clear();
    check(schema, value, "");
    return std::move(errors_);
  }

 private:
  void complain(const std::string& place, const std::string& what) {
    errors_.push_back((place.empty() ? "/" : place) + ": " + what);
  }

  void check(const Json& schema, const Json& value, const std::string& place) {
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "$ref")
        check(root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), value, place);
      else if (keyword == "type")
        check_type(rule, value, place);
      else if (keyword == "const" && value != rule)
        complain(place, "is not " + rule.dump());
      else if (keyword == "enum" && std::ranges::find(rule, value) == rule.end())
        complain(place, value.dump() + " is none of " + rule.dump());
      else if (keyword == "anyOf")
        check_any(rule, value, place);
      else
        check_parts(schema, keyword, rule, value, place);
    }
  }

  void check_parts(const Json& schema, const std::string& keyword, const Json& rule, const Json& value,
                   const std::string& place) {
    if (keyword == "properties")
      check_members(schema, value, place);
    else if (keyword == "required")
      check_required(rule, value, place);
    else if (keyword == "items")
      check_items(rule, value, place);
    else if (keyword == "minItems" || keyword == "maxItems")
      check_length(keyword, rule, value, place);
    else if (keyword == "additionalProperties" && !schema.contains("properties"))
      check_members(schema, value, place);
    else if (keyword != "additionalProperties" && keyword != "const" && keyword != "enum" &&
             std::ranges::find(kAnnotations, keyword) == kAnnotations.end())
      complain(place, "no rule is known for " + keyword);
  }

  void check_type(const Json& rule, const Json& value, const std::string& place) {
    const auto is = [&value](const std::string& type) {
      return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
             (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
             (type == "null" && value.is_null()) || (type == "integer" && value.is_number_integer()) ||
             (type == "number" && value.is_number());
    };
    const bool holds = rule.is_array() ? std::ranges::any_of(rule, is) : is(rule.get<std::string>());
    if (!holds) complain(place, value.dump().substr(0, 60) + " is no " + rule.dump());
  }

  void check_members(const Json& schema, const Json& value, const std::string& place) {
    if (!value.is_object()) return;
    const Json known = schema.value("properties", Json::object());
    const Json others = schema.value("additionalProperties", Json(true));
    for (const auto& [key, member] : value.items()) {
      const std::string where = place + "/" + key;
      if (known.contains(key))
        check(known[key], member, where);
      else if (others.is_object())
        check(others, member, where);
      else if (!others.get<bool>())
        complain(where, "is a key that the schema does not have");
    }
  }

  void check_required(const Json& rule, const Json& value, const std::string& place) {
    if (!value.is_object()) return;
    for (const Json& key : rule)
      if (!value.contains(key.get<std::string>())) complain(place, "has no " + key.dump());
  }

  void check_items(const Json& rule, const Json& value, const std::string& place) {
    if (!value.is_array()) return;
    for (std::size_t index = 0; index < value.size(); ++index)
      check(rule, value[index], place + "/" + std::to_string(index));
  }

  void check_length(const std::string& keyword, const Json& rule, const Json& value, const std::string& place) {
    if (!value.is_array()) return;
    const auto bound = rule.get<std::size_t>();
    if (keyword == "minItems" ? value.size() < bound : value.size() > bound)
      complain(place, "has " + std::to_string(value.size()) + " items, " + keyword + " is " + rule.dump());
  }

  // The errors of the alternative that is nearest.
  void check_any(const Json& rule, const Json& value, const std::string& place) {
    std::vector<std::string> fewest{place + ": fits no alternative"};
    for (std::size_t index = 0; index < rule.size(); ++index) {
      Validator alternative(root_);
      alternative.check(rule[index], value, place);
      if (alternative.errors_.empty()) return;
      if (index == 0 || alternative.errors_.size() < fewest.size()) fewest = std::move(alternative.errors_);
    }
    errors_.insert(errors_.end(), fewest.begin(), fewest.end());
  }

  const Json& root_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> schema_errors(const nlohmann::json& schema, const nlohmann::json& document) {
  return Validator(schema).errors(schema, document);
}

}  // namespace dculab::test
