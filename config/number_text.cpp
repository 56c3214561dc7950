#include "config/number_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dculab::config {

std::string number(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  char buffer[64];
  const double magnitude = std::abs(value);
  if (magnitude != 0 && (magnitude >= 1e6 || magnitude < 1e-3))
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  else
    std::snprintf(buffer, sizeof buffer, "%.*f",
                  magnitude == 0 ? 0 : std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(magnitude)))),
                  value);
  return buffer;
}

std::string exact_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string percent(double share, int digits) {
  constexpr double kLeast = 1e-4;  // 0.01 %
  return number(std::abs(share) < kLeast ? 0 : 100 * share, digits) + " %";
}

std::string signed_percent(double share, int digits) {
  const std::string text = percent(std::abs(share), digits);
  return (share < 0 && text != "0 %" ? "−" : "+") + text;
}

std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace dculab::config
