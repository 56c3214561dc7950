#include "config/unit_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

constexpr double kKibi = 1024.0;
constexpr double kMebi = 1024.0 * kKibi;
constexpr double kGibi = 1024.0 * kMebi;

constexpr std::array<Unit, 44> kUnits{{
    {Dimension::bytes, "B", 1},
    {Dimension::bytes, "kB", 1e3},
    {Dimension::bytes, "KiB", kKibi},
    {Dimension::bytes, "MB", 1e6},
    {Dimension::bytes, "MiB", kMebi},
    {Dimension::bytes, "GB", 1e9},
    {Dimension::bytes, "GiB", kGibi},
    {Dimension::bytes, "TB", 1e12},
    {Dimension::bytes, "TiB", 1024.0 * kGibi},
    {Dimension::seconds, "ns", 1e-9},
    {Dimension::seconds, "us", 1e-6},
    {Dimension::seconds, "ms", 1e-3},
    {Dimension::seconds, "s", 1},
    {Dimension::flop, "FLOP", 1},
    {Dimension::flop, "kFLOP", 1e3},
    {Dimension::flop, "MFLOP", 1e6},
    {Dimension::flop, "GFLOP", 1e9},
    {Dimension::flop, "TFLOP", 1e12},
    {Dimension::flop, "PFLOP", 1e15},
    {Dimension::frequency, "Hz", 1},
    {Dimension::frequency, "kHz", 1e3},
    {Dimension::frequency, "MHz", 1e6},
    {Dimension::frequency, "GHz", 1e9},
    {Dimension::bandwidth, "B/s", 1},
    {Dimension::bandwidth, "kB/s", 1e3},
    {Dimension::bandwidth, "KiB/s", kKibi},
    {Dimension::bandwidth, "MB/s", 1e6},
    {Dimension::bandwidth, "MiB/s", kMebi},
    {Dimension::bandwidth, "GB/s", 1e9},
    {Dimension::bandwidth, "GiB/s", kGibi},
    {Dimension::bandwidth, "TB/s", 1e12},
    {Dimension::flop_rate, "FLOP/s", 1},
    {Dimension::flop_rate, "kFLOP/s", 1e3},
    {Dimension::flop_rate, "MFLOP/s", 1e6},
    {Dimension::flop_rate, "GFLOP/s", 1e9},
    {Dimension::flop_rate, "TFLOP/s", 1e12},
    {Dimension::flop_rate, "PFLOP/s", 1e15},
    {Dimension::power, "mW", 1e-3},
    {Dimension::power, "W", 1},
    {Dimension::power, "kW", 1e3},
    {Dimension::energy, "mJ", 1e-3},
    {Dimension::energy, "J", 1},
    {Dimension::energy, "kJ", 1e3},
    {Dimension::energy, "MJ", 1e6},
}};

struct DimensionWords {
  std::string_view noun;
  std::string_view example;
};

DimensionWords words(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return {"a size", "16 GiB"};
    case Dimension::seconds:
      return {"a time", "50 ms"};
    case Dimension::flop:
      return {"a FLOP count", "2 TFLOP"};
    case Dimension::frequency:
      return {"a clock", "1.5 GHz"};
    case Dimension::bandwidth:
      return {"a bandwidth", "1024 GB/s"};
    case Dimension::flop_rate:
      return {"a FLOP rate", "24.6 TFLOP/s"};
    case Dimension::power:
      return {"a power", "300 W"};
    case Dimension::energy:
      return {"an energy", "0.5 J"};
  }
  return {"", ""};
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw InputError(in_quotes(text) + " " + why);
}

const Unit* find_unit(Dimension dimension, std::string_view symbol) {
  for (const Unit& unit : units())
    if (unit.dimension == dimension && unit.symbol == symbol) return &unit;
  return nullptr;
}

// The usual slips spelled our way, in lower case: "GBps" and "gb/s" become "gb/s", "TOPS" becomes "tflop/s".
std::string normalised(std::string_view symbol) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSlips{{{"flops", "flop/s"},
                                                                                        {"top/s", "tflop/s"},
                                                                                        {"tops", "tflop/s"},
                                                                                        {"bps", "b/s"},
                                                                                        {"bytes", "b"},
                                                                                        {"sec", "s"},
                                                                                        {"\xc2\xb5s", "us"}}};
  std::string result(symbol);
  for (char& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  for (const auto& [slip, right] : kSlips)
    if (result.ends_with(slip)) return result.replace(result.size() - slip.size(), slip.size(), right);
  return result;
}

// "'2 s', '2 ms', '2 us' or '2 ns'": what a number without its unit may have meant.
std::string with_units(Dimension dimension, std::string_view number) {
  std::string digits(number.substr(0, number.find_last_not_of(' ') + 1));
  if (dimension == Dimension::seconds)
    return in_quotes(digits + " s") + ", " + in_quotes(digits + " ms") + ", " + in_quotes(digits + " us") + " or " +
           in_quotes(digits + " ns");
  const std::string_view example = words(dimension).example;
  return in_quotes(digits.append(example.substr(example.find(' '))));
}

[[noreturn]] void refuse_unit(Dimension dimension, std::string_view text, std::string_view symbol) {
  const DimensionWords wanted = words(dimension);
  for (const Unit& unit : units())
    if (unit.dimension == dimension && normalised(unit.symbol) == normalised(symbol))
      refuse(text, "has the unit " + in_quotes(symbol) + " (units are case-sensitive, and bits are not used); write " +
                       in_quotes(unit.symbol));
  for (const Unit& unit : units())
    if (unit.symbol == symbol)
      refuse(text, "is " + std::string(words(unit.dimension).noun) + ", not " + std::string(wanted.noun) +
                       "; write for example " + in_quotes(wanted.example));
  refuse(text, "has the unknown unit " + in_quotes(symbol) + "; write " + std::string(wanted.noun) + " like " +
                   in_quotes(wanted.example));
}

std::string shortest(double value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

// What times `factor` is `value`, without the digits that the division adds to it (60 ns / 1 ns = 60.00000000000001);
// empty where there is no such number.
std::string number_of(double value, double factor) {
  std::array<char, 64> buffer{};
  const auto rounded =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value / factor, std::chars_format::general, 15);
  double fewer_digits = 0;
  std::from_chars(buffer.data(), rounded.ptr, fewer_digits);
  for (const double number : {fewer_digits, value / factor})
    if (number * factor == value) return shortest(number);
  return "";
}

// Reports count bytes in powers of two, everything else in powers of ten.
bool is_for_reports(const Unit& unit) {
  const bool binary = unit.symbol.find("iB") != std::string_view::npos;
  return unit.factor == 1 || binary == (unit.dimension == Dimension::bytes);
}

std::string three_digits(double mantissa) {
  std::array<char, 64> buffer{};
  const bool whole = mantissa == std::floor(mantissa);
  const int decimals = whole || mantissa >= 99.95 ? 0 : mantissa >= 9.995 ? 1 : 2;
  if (mantissa >= 1 || whole)
    std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, mantissa);
  else
    std::snprintf(buffer.data(), buffer.size(), "%.3g", mantissa);
  return buffer.data();
}

}  // namespace

std::span<const Unit> units() { return kUnits; }

double parse_in(Dimension dimension, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view noun = words(dimension).noun;
  const std::string example = "; write for example " + in_quotes(words(dimension).example);
  if (error == std::errc::result_out_of_range) refuse(text, "is too large or too small for a number");
  if (error != std::errc()) refuse(text, "is not " + std::string(noun) + example);
  if (!std::isfinite(number)) refuse(text, "is not finite" + example);
  if (std::signbit(number)) refuse(text, "is negative; " + std::string(noun) + " cannot be");
  std::string_view symbol(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (symbol.starts_with(' ')) symbol.remove_prefix(1);
  if (symbol.empty()) refuse(text, "has no unit; write for example " + with_units(dimension, text));
  const Unit* unit = find_unit(dimension, symbol);
  if (unit == nullptr) refuse_unit(dimension, text, symbol);
  const double value = number * unit->factor;
  if (!std::isfinite(value)) refuse(text, "is too large");
  return value;
}

std::string exact_text(Dimension dimension, double value) {
  constexpr double kLargestMantissa = 1e4;
  constexpr std::size_t kLongerBy =
      2;  // "84.415625 GB/s" rather than "84415625 kB/s", "0.1 us" than 99.99999999999999 ns
  std::string shortest, handy;
  for (const Unit& unit : units()) {
    if (unit.dimension != dimension) continue;
    const std::string number = number_of(value, unit.factor);
    if (number.empty()) continue;
    const std::string text = number + " " + std::string(unit.symbol);
    if (shortest.empty() || text.size() <= shortest.size()) shortest = text;
    const double mantissa = std::abs(value) / unit.factor;
    if (mantissa < 1 || mantissa >= kLargestMantissa) continue;
    if (handy.empty() || text.size() <= handy.size()) handy = text;
  }
  return !handy.empty() && handy.size() <= shortest.size() + kLongerBy ? handy : shortest;
}

std::string short_text(Dimension dimension, double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const double magnitude = std::abs(value);
  const Unit* chosen = nullptr;
  for (const Unit& unit : units()) {
    if (unit.dimension != dimension || !is_for_reports(unit)) continue;
    // 999.5 would print as 1000: the next unit is nicer.
    if (chosen == nullptr || magnitude >= 0.9995 * unit.factor) chosen = &unit;
  }
  const double mantissa = magnitude / chosen->factor;
  std::string text(value < 0 ? "-" : "");
  text += three_digits(mantissa < 1 && mantissa >= 0.9995 ? 1 : mantissa);
  return text.append(" ").append(chosen->symbol);
}

}  // namespace dculab::config
