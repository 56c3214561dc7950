#include "present/output/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dculab::present {
Cell::Cell(std::string shown, double exact) : text(std::move(shown)), raw(exact_number(exact)) {}

void add_warnings(Report& report, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    const std::string line = "warning: " + warning;
    if (std::ranges::find(report.heading, line) != report.heading.end()) continue;
    report.heading.push_back(line);
    report.json["warnings"].push_back(warning);
  }
}

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

Json choices_json(const std::vector<std::pair<std::string, std::string>>& choices) {
  Json json = Json::object();
  for (const auto& [key, value] : choices) json[key] = value;
  return json;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string exact_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string percent(double share, int digits) { return number(100 * share, digits) + " %"; }

std::string signed_percent(double share, int digits) {
  constexpr double kLeast = 1e-4;  // 0.01 %: less is no difference
  const double shown = std::abs(share) < kLeast ? 0 : share;
  return (shown < 0 ? "−" : "+") + percent(std::abs(shown), digits);
}

}  // namespace dculab::present
