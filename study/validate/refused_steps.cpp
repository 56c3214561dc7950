#include "study/validate/refused_steps.hpp"

#include <map>

#include "config/unit_text.hpp"

namespace dculab::study {

std::vector<std::string> refusal_lines(const std::vector<sim::FloorViolation>& violations, const Trace& trace) {
  std::map<std::size_t, const sim::FloorViolation*> worst;  // by row
  for (const sim::FloorViolation& violation : violations) {
    const sim::FloorViolation*& known = worst[violation.row];
    if (known == nullptr || violation.floor / violation.measured > known->floor / known->measured) known = &violation;
  }
  std::vector<std::string> lines;
  for (const auto& [row, violation] : worst)
    lines.push_back("refused: row " + std::to_string(row + 1) + " (" + trace.steps[row].id + "): " + violation->what +
                    " took " + config::short_text(violation->measured) + ", below the " +
                    config::short_text(violation->floor) + " that the " + violation->limit + " allows");
  return lines;
}

}  // namespace dculab::study
