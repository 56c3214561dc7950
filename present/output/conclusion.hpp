// The conclusion of a report: sentences below its tables, and `conclusion` of its JSON.
#pragma once

#include <string>

#include "present/output/report.hpp"

namespace dculab::present {

// Adds a sentence.
void conclude(Report& report, const std::string& sentence);

// The conclusion of a part becomes the whole's.
void move_conclusion(Report& part, Report& whole);

// Empty where there is none.
[[nodiscard]] std::string conclusion_text(const Report& report);

}  // namespace dculab::present
