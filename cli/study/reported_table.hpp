// Published figures of a study with compare beside what is predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/study/variant_cost.hpp"
#include "config/scenario_file.hpp"

namespace dculab::cli {

// One point of the sweep on one machine: what each variant costs, the baseline first.
struct ComparedPoint {
  const config::SweepPoint* point = nullptr;
  std::vector<VariantCost> costs;  // [1 + variants]
};

[[nodiscard]] double change_of(const std::string& metric, const VariantCost& variant, const VariantCost& baseline);

// The cells of a point's axes, and their columns.
[[nodiscard]] std::vector<Cell> axes_cells(const config::SweepPoint& point);
[[nodiscard]] std::vector<std::string> axes_columns(const std::vector<ComparedPoint>& points);

// One published figure beside the prediction for the same point.
struct Verdict {
  const ComparedPoint* point = nullptr;
  const config::ReportedFigure* figure = nullptr;
  const VariantCost* variant = nullptr;
  double predicted = 0;          // change; of a figure that stands alone, the figure
  FigureInterval of_baseline{};  // the same of its interval
  std::optional<FigureInterval> of_change{};

  [[nodiscard]] const VariantCost& baseline() const { return point->costs.front(); }
};

// All published figures of what fits, at the points that they belong to. Throws InputError for a figure that the
// workload does not have.
[[nodiscard]] std::vector<Verdict> judge(const std::vector<ComparedPoint>& points, const config::Scenario& scenario);

// Tables of figures that stand alone, and of changes against the baseline, each where there are any.
[[nodiscard]] std::vector<Table> reported_tables(const std::vector<Verdict>& verdicts,
                                                 const std::vector<ComparedPoint>& points,
                                                 const config::Compare& compare, const std::string& machine);

[[nodiscard]] Json verdict_json(const Verdict& verdict);

}  // namespace dculab::cli
