// Published figures of a study with compare beside what is predicted.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "study/validate/reported_figures.hpp"

namespace dculab::present {

// The cells of a point's axes, and their columns.
[[nodiscard]] Row axes_cells(const config::SweepPoint& point);
[[nodiscard]] std::vector<std::string> axes_columns(const std::vector<study::ComparedPoint>& points);

// Tables of figures that stand alone, and of changes against the baseline, each where there are any.
[[nodiscard]] std::vector<Table> reported_tables(const std::vector<study::ReportedScore>& verdicts,
                                                 const std::vector<study::ComparedPoint>& points,
                                                 const config::Compare& compare, const std::string& machine);

}  // namespace dculab::present
