#include "bindings/http/request_body.hpp"

#include <algorithm>
#include <cmath>

#include "config/number_text.hpp"
#include "core/error.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::http {
namespace {

constexpr int kLargestId = 1 << 30;

[[nodiscard]] Node parsed(std::string_view text) {
  if (const std::size_t valid = valid_prefix(text); valid != text.size())
    throw ApiError(400, "the body is not UTF-8 from byte " + std::to_string(valid + 1) + " on");
  try {
    Node root = parse_json("body", 1, text);
    if (root.kind != NodeKind::map) throw ApiError(400, "the body is no JSON object");
    return root;
  } catch (const InputError& error) {
    throw ApiError(400, error.what());
  }
}

[[nodiscard]] bool is_neutral(const Node& value, std::string_view neutral) {
  if (value.kind != NodeKind::scalar) return value.children.empty();
  const bool is_number = value.is(ScalarType::integer) || value.is(ScalarType::real);
  if (is_number) return !neutral.empty() && config::exact_number(number_of(value)) == neutral;
  const bool wants_text =
      neutral.find_first_of("0123456789") == std::string_view::npos && neutral != "false" && neutral != "true";
  return value.text == neutral && value.is(ScalarType::text) == wants_text;
}

}  // namespace

RequestBody::RequestBody(std::string_view text) : root_(parsed(text)) {}

const Node* RequestBody::member(std::string_view key) {
  asked_.emplace(key);
  const Node* found = root_.find(key);
  return found == nullptr || found->kind == NodeKind::null ? nullptr : found;
}

std::optional<double> RequestBody::number(std::string_view key, double least, double most) {
  const Node* found = member(key);
  if (found == nullptr) return std::nullopt;
  const bool is_number = found->is(ScalarType::integer) || found->is(ScalarType::real);
  const double value = is_number ? number_of(*found) : NAN;
  if (!(value >= least && value <= most))
    throw bad_parameter(std::string(key),
                        "must be a number from " + config::exact_number(least) + " to " + config::exact_number(most));
  return value;
}

std::optional<std::int64_t> RequestBody::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const Node* found = member(key);
  if (found == nullptr) return std::nullopt;
  const auto value = integer_of(*found);
  if (!value || *value < least || *value > most)
    throw bad_parameter(std::string(key),
                        "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

bool RequestBody::flag(std::string_view key, bool fallback) {
  const Node* found = member(key);
  if (found == nullptr) return fallback;
  if (!found->is(ScalarType::flag)) throw bad_parameter(std::string(key), "must be true or false");
  return found->text == "true";
}

std::optional<std::string> RequestBody::text(std::string_view key) {
  const Node* found = member(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is(ScalarType::text)) throw bad_parameter(std::string(key), "must be a string");
  return found->text;
}

void RequestBody::must_be_neutral(std::string_view key, std::string_view neutral, const std::string& why) {
  const Node* found = member(key);
  if (found != nullptr && !is_neutral(*found, neutral)) throw bad_parameter(std::string(key), why);
}

void RequestBody::refuse_others() const {
  for (const Node& child : root_.children)
    if (child.kind != NodeKind::null && !asked_.contains(child.key))
      throw ApiError(400, "unknown parameter " + in_quotes(child.key), child.key);
}

std::vector<int> token_ids_of(const Node& list, const std::string& param) {
  std::vector<int> ids;
  for (const Node& child : list.children) {
    const auto id = integer_of(child);
    if (!id || *id < 0 || *id > kLargestId) throw bad_parameter(param, "must have token ids only");
    ids.push_back(static_cast<int>(*id));
  }
  return ids;
}

}  // namespace dculab::http
