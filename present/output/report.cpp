#include "present/output/report.hpp"

#include <algorithm>

namespace dculab::present {

void add_warnings(Report& report, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    const std::string line = "warning: " + warning;
    if (std::ranges::find(report.heading, line) != report.heading.end()) continue;
    report.heading.push_back(line);
    report.json["warnings"].push_back(warning);
  }
}

}  // namespace dculab::present
