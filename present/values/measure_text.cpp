#include "present/values/measure_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>

#include "config/number_text.hpp"

namespace dculab::present {

std::optional<Measure> find_measure(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  std::string_view symbol = text.substr(static_cast<std::size_t>(end - text.data()));
  if (symbol.empty()) return Measure{number};
  while (symbol.starts_with(' ')) symbol.remove_prefix(1);
  const auto unit = std::ranges::find(config::units(), symbol, &config::Unit::symbol);
  if (unit == config::units().end()) return std::nullopt;
  return Measure{number * unit->factor, unit->dimension};
}

std::string_view core_unit(config::Dimension dimension) {
  const auto is_core = [dimension](const config::Unit& unit) {
    return unit.dimension == dimension && unit.factor == 1;
  };
  return std::ranges::find_if(config::units(), is_core)->symbol;
}

std::string readable(const std::string& text) {
  constexpr std::ptrdiff_t kMostDigits = 5;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string_view digits = std::string_view(text).substr(0, text.find_first_of(" e"));
  const std::size_t first = std::min(digits.find_first_of("123456789"), digits.size());
  if (std::ranges::count_if(digits.substr(first), is_digit) <= kMostDigits) return text;
  const std::optional<Measure> measure = find_measure(text);
  if (!measure) return text;
  if (measure->dimension) return config::short_text(*measure->dimension, measure->value);
  return digits.find('.') == std::string_view::npos ? text : config::number(measure->value, 4);
}

}  // namespace dculab::present
