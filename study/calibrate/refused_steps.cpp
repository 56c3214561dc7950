#include "study/calibrate/refused_steps.hpp"

#include <algorithm>
#include <map>

#include "config/unit_text.hpp"

namespace dculab::study {

std::vector<LeftOutRow> refused_rows(const std::vector<sim::FloorViolation>& violations, const Trace& trace) {
  std::map<std::size_t, const sim::FloorViolation*> worst;  // by row
  for (const sim::FloorViolation& violation : violations) {
    const sim::FloorViolation*& known = worst[violation.row];
    if (known == nullptr || violation.floor / violation.measured > known->floor / known->measured) known = &violation;
  }
  std::vector<LeftOutRow> rows;
  for (const auto& [row, violation] : worst)
    rows.push_back({static_cast<int>(row) + 1, trace.steps[row].id,
                    violation->what + " took " + config::short_text(violation->measured) + ", below the " +
                        config::short_text(violation->floor) + " that the " + violation->limit + " allows",
                    violation->limit});
  return rows;
}

std::string refusal_line(const LeftOutRow& row) {
  return "refused: row " + std::to_string(row.line) + " (" + row.id + "): " + row.reason;
}

std::vector<std::string> refusal_lines(const std::vector<sim::FloorViolation>& violations, const Trace& trace) {
  std::vector<std::string> lines;
  for (const LeftOutRow& row : refused_rows(violations, trace)) lines.push_back(refusal_line(row));
  return lines;
}

std::vector<std::size_t> believed_rows(const std::vector<sim::FloorViolation>& violations, std::size_t num_rows) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < num_rows; ++row)
    if (std::ranges::find(violations, row, &sim::FloorViolation::row) == violations.end()) rows.push_back(row);
  return rows;
}

}  // namespace dculab::study
