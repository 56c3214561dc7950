#include "cli/refusals.hpp"

#include "config/unit_text.hpp"

namespace dculab::cli {

std::vector<std::string> refusal_lines(const std::vector<sim::FloorViolation>& violations, const Trace& trace) {
  std::vector<std::string> lines;
  for (const sim::FloorViolation& violation : violations)
    lines.push_back("refused: row " + std::to_string(violation.row + 1) + " (" + trace.steps[violation.row].id +
                    "): " + violation.what + " took " + config::short_text(violation.measured) + ", below the " +
                    config::short_text(violation.floor) + " that the " + violation.limit + " allows");
  return lines;
}

void add_refusals(const std::vector<sim::FloorViolation>& violations, const Trace& trace, Report& report) {
  report.json["refused"] = Json::array();
  for (const std::string& line : refusal_lines(violations, trace)) {
    report.heading.push_back(line);
    report.json["refused"].push_back(line);
  }
}

}  // namespace dculab::cli
