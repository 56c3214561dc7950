// Published figures of a study with `compare`, each beside what is predicted.
#pragma once

#include <optional>
#include <vector>

#include "study/evaluate/compared_points.hpp"

namespace dculab::study {

// One published figure beside the prediction for the same point.
struct ReportedScore {
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
[[nodiscard]] std::vector<ReportedScore> score_reported(const std::vector<ComparedPoint>& points,
                                                        const config::Scenario& scenario);

}  // namespace dculab::study
