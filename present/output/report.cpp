#include "present/output/report.hpp"

#include <algorithm>

namespace dculab::present {

Cell::Cell(std::string shown, double exact) : text(std::move(shown)), raw(exact_number(exact)) {}

Cell::Cell(std::string shown, double low, double high)
    : text(std::move(shown)), raw(exact_number(low)), raw_high(exact_number(high)) {}

void add_warnings(Report& report, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    const std::string line = "warning: " + warning;
    if (std::ranges::find(report.heading, line) != report.heading.end()) continue;
    report.heading.push_back(line);
    report.json["warnings"].push_back(warning);
  }
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace dculab::present
