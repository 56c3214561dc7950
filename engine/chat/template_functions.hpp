// The filters, tests, methods and functions of the subset.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat/template_value.hpp"

namespace dculab::engine::chat {

// Of a call.
struct Arguments {
  List values{};
  Dict named{};

  // By name, or at `index`; Undefined where it was not given.
  [[nodiscard]] Value at(std::size_t index, std::string_view name) const;
};

// "X is not in the subset ..."
[[nodiscard]] std::string not_in_subset(const std::string& construct);

[[nodiscard]] bool is_filter(std::string_view name);
[[nodiscard]] bool is_test(std::string_view name);
[[nodiscard]] bool is_method(std::string_view name);
[[nodiscard]] bool is_function(std::string_view name);

// All throw TemplateError for values that they are not for, and for filters and methods outside of the subset: as in
// Jinja, a template may have those where no conversation comes.
[[nodiscard]] Value filtered(std::string_view filter, const Value& value, const Arguments& arguments);
[[nodiscard]] bool tested(std::string_view test, const Value& value, const Arguments& arguments);
[[nodiscard]] Value called_method(std::string_view method, const Value& value, const Arguments& arguments);
[[nodiscard]] Value called_function(std::string_view function, const Arguments& arguments);

// left + right and so on, as Python does it.
[[nodiscard]] Value calculated(std::string_view sign, const Value& left, const Value& right);
// left < right and so on; also "in" and "not in".
[[nodiscard]] bool holds(std::string_view sign, const Value& left, const Value& right);
// value[begin:end:step]; Undefined or None: left out.
[[nodiscard]] Value sliced(const Value& value, const Value& begin, const Value& end, const Value& step);
// value[index]
[[nodiscard]] Value item_at(const Value& value, const Value& index);

}  // namespace dculab::engine::chat
