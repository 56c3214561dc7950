#include "core/allowed_numbers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "core/letter_case.hpp"

namespace dculab {
namespace {

constexpr double kLargestMeant = 1e15;

[[nodiscard]] std::string digits_of(double number) {
  const bool is_whole = number == std::floor(number) && std::abs(number) <= kLargestMeant;
  return is_whole ? std::to_string(static_cast<std::int64_t>(number)) : "";
}

}  // namespace

std::string one_of(const std::vector<int>& numbers) {
  constexpr std::size_t kMostShown = 16;
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool is_last = i + 1 == numbers.size();
    if (!is_last && i + 1 >= kMostShown) continue;
    if (i > 0) text += !is_last ? ", " : numbers.size() > kMostShown ? " ... " : " or ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

std::string divisors_of(int number) {
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0) divisors.push_back(divisor);
  return one_of(divisors);
}

std::string powers_of_two(int least, int most) {
  std::vector<int> powers;
  for (std::int64_t power = 1; power <= most; power *= 2)
    if (power >= least) powers.push_back(static_cast<int>(power));
  return one_of(powers);
}

std::string whole_number_meant(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return "";
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty()) return digits_of(number);
  const bool is_kilo = unit == "k" || unit == "K", is_mega = unit == "m" || unit == "M";
  if (!is_kilo && !is_mega) return "";
  const std::string decimal = digits_of(number * (is_kilo ? 1e3 : 1e6));
  const std::string binary = digits_of(number * (is_kilo ? 1024 : 1024 * 1024));
  return decimal.empty() || binary.empty() ? decimal + binary : decimal + " or " + binary;
}

std::string rate_meant(std::string_view text) {
  constexpr std::array<std::string_view, 9> kUnits{"/s",  "/sec",      "/second",    "req/s", "reqs/s",
                                                   "rps", "request/s", "requests/s", "qps"};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return "";
  const std::string_view written = text.substr(0, static_cast<std::size_t>(end - text.data()));
  std::string_view unit = text.substr(written.size());
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  return std::ranges::find(kUnits, lower_case(unit)) == kUnits.end() ? "" : std::string(written);
}

}  // namespace dculab
