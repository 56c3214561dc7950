#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/chat/template_functions.hpp"

namespace dculab::engine::chat {
namespace {

constexpr std::size_t kLongestText = std::size_t{64} << 20;  // that an operator makes
constexpr std::size_t kLongestList = std::size_t{1} << 20;

[[noreturn]] void refuse_operands(std::string_view sign, const Value& left, const Value& right) {
  for (const Value& each : {left, right})
    if (const auto* undefined = each.as<Undefined>()) throw TemplateError("'" + undefined->name + "' is undefined");
  throw TemplateError("no operator " + std::string(sign) + " for " + type_name(left) + " and " + type_name(right));
}

[[nodiscard]] std::int64_t integer_of(const Value& value) {
  const auto* number = value.as<std::int64_t>();
  return number != nullptr ? *number : static_cast<std::int64_t>(number_of(value));
}

[[nodiscard]] Value whole_numbers(char sign, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  bool overflows = false;
  if (sign == '+') overflows = __builtin_add_overflow(left, right, &result);
  if (sign == '-') overflows = __builtin_sub_overflow(left, right, &result);
  if (sign == '*') overflows = __builtin_mul_overflow(left, right, &result);
  if (overflows) throw TemplateError("a number has more than 64 bits");
  return result;
}

// Rounded down, as Python's // and %.
[[nodiscard]] Value divided(std::string_view sign, const Value& left, const Value& right) {
  if (number_of(right) == 0) throw TemplateError("division by zero");
  if (sign == "/") return number_of(left) / number_of(right);
  if (left.as<double>() || right.as<double>()) {
    const double quotient = std::floor(number_of(left) / number_of(right));
    return sign == "//" ? quotient : number_of(left) - quotient * number_of(right);
  }
  const std::int64_t dividend = integer_of(left), divisor = integer_of(right);
  if (divisor == -1) return sign == "//" ? whole_numbers('-', 0, dividend) : Value(std::int64_t{0});
  const std::int64_t rest = dividend % divisor;
  const bool rounds_down = rest != 0 && (rest < 0) != (divisor < 0);
  if (sign == "//") return dividend / divisor - (rounds_down ? 1 : 0);
  return rest + (rounds_down ? divisor : 0);
}

[[nodiscard]] Value power(const Value& left, const Value& right) {
  const double result = std::pow(number_of(left), number_of(right));
  const bool is_whole = !left.as<double>() && !right.as<double>() && number_of(right) >= 0;
  if (!is_whole) return result;
  if (std::abs(result) >= 9e15) throw TemplateError("a number has more than 53 bits");
  return static_cast<std::int64_t>(result);
}

[[nodiscard]] Value numbers(std::string_view sign, const Value& left, const Value& right) {
  if (sign == "/" || sign == "//" || sign == "%") return divided(sign, left, right);
  if (sign == "**") return power(left, right);
  if (!left.as<double>() && !right.as<double>()) return whole_numbers(sign[0], integer_of(left), integer_of(right));
  const double one = number_of(left), other = number_of(right);
  return sign == "+" ? one + other : sign == "-" ? one - other : one * other;
}

[[nodiscard]] Value joined(const std::string& left, const std::string& right) {
  if (left.size() + right.size() > kLongestText) throw TemplateError("a text is longer than 64 MiB");
  return left + right;
}

[[nodiscard]] Value repeated(const std::string& text, std::int64_t count) {
  std::string result;
  if (count > 0 && text.size() > kLongestText / static_cast<std::size_t>(count))
    throw TemplateError("a text is longer than 64 MiB");
  for (; count > 0; --count) result += text;
  return result;
}

// Bounds of range(size)[begin:end:step].
struct Steps {
  std::int64_t first = 0, end = 0, step = 1;
};

[[nodiscard]] std::optional<std::int64_t> bound_of(const Value& value) {
  if (value.is_undefined() || value.is_none()) return std::nullopt;
  if (!value.is_number() || value.as<double>())
    throw TemplateError("an index is a whole number, not " + type_name(value));
  return integer_of(value);
}

[[nodiscard]] Steps steps_of(std::int64_t size, const Value& begin, const Value& end, const Value& step) {
  Steps steps{.step = bound_of(step).value_or(1)};
  if (steps.step == 0) throw TemplateError("the step of a slice is 0");
  const bool forward = steps.step > 0;
  const std::int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const auto place = [&](std::optional<std::int64_t> bound, std::int64_t fallback) {
    if (!bound) return fallback;
    return std::clamp(*bound < 0 ? *bound + size : *bound, low, high);
  };
  steps.first = place(bound_of(begin), forward ? low : high);
  steps.end = place(bound_of(end), forward ? high : low);
  return steps;
}

}  // namespace

Value calculated(std::string_view sign, const Value& left, const Value& right) {
  if (sign == "~") return joined(text_of(left), text_of(right));
  if (left.is_number() && right.is_number()) return numbers(sign, left, right);
  const auto *text = left.as<std::string>(), *other_text = right.as<std::string>();
  if (sign == "+" && text && other_text) return joined(*text, *other_text);
  if (sign == "*" && text && right.as<std::int64_t>()) return repeated(*text, integer_of(right));
  if (sign == "*" && other_text && left.as<std::int64_t>()) return repeated(*other_text, integer_of(left));
  if (sign != "+" || !left.list() || !right.list()) refuse_operands(sign, left, right);
  List both = *left.list();
  both.insert(both.end(), right.list()->begin(), right.list()->end());
  if (both.size() > kLongestList) throw TemplateError("a list has more than a million items");
  return both;
}

bool holds(std::string_view sign, const Value& left, const Value& right) {
  if (sign == "==") return equal(left, right);
  if (sign == "!=") return !equal(left, right);
  if (sign == "in") return contains(right, left);
  if (sign == "not in") return !contains(right, left);
  const int order = compared(left, right);
  if (sign == "<") return order < 0;
  if (sign == "<=") return order <= 0;
  return sign == ">" ? order > 0 : order >= 0;
}

Value sliced(const Value& value, const Value& begin, const Value& end, const Value& step) {
  const auto* text = value.as<std::string>();
  if (text == nullptr && value.list() == nullptr) {
    if (const auto* undefined = value.as<Undefined>()) throw TemplateError("'" + undefined->name + "' is undefined");
    throw TemplateError(type_name(value) + " has no slices");
  }
  const List items = items_of(value);
  const Steps steps = steps_of(std::ssize(items), begin, end, step);
  List kept;
  for (std::int64_t at = steps.first; steps.step > 0 ? at < steps.end : at > steps.end; at += steps.step)
    kept.push_back(items[static_cast<std::size_t>(at)]);
  if (text == nullptr) return kept;
  std::string part;
  for (const Value& each : kept) part += *each.as<std::string>();
  return part;
}

Value item_at(const Value& value, const Value& index) {
  if (const auto* undefined = value.as<Undefined>()) throw TemplateError("'" + undefined->name + "' is undefined");
  if (const auto* name = index.as<std::string>()) return member(value, *name);
  const bool is_counted = value.list() != nullptr || value.as<std::string>() != nullptr;
  if (!is_counted || !index.as<std::int64_t>()) return Undefined{text_of(index)};
  const List items = value.list() != nullptr ? List{} : items_of(value);
  const List& all = value.list() != nullptr ? *value.list() : items;
  std::int64_t at = integer_of(index);
  if (at < 0) at += std::ssize(all);
  if (at < 0 || at >= std::ssize(all)) return Undefined{text_of(index)};
  return all[static_cast<std::size_t>(at)];
}

}  // namespace dculab::engine::chat
