#include "study/validate/reported_figures.hpp"

#include "core/error.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] ReportedScore score(const config::ReportedFigure& figure, const ComparedPoint& point,
                                  const VariantCost& cost) {
  const VariantCost& baseline = point.costs.front();
  if (figure.stands_alone())
    return {&point, &figure, &cost, cost.figures.at(figure.metric), interval_of(cost, figure.metric), {}};
  return {&point,
          &figure,
          &cost,
          change_of(figure.metric, cost, baseline),
          interval_of(baseline, figure.metric),
          interval_of_change(baseline, cost, figure.metric)};
}

}  // namespace

std::vector<ReportedScore> score_reported(const std::vector<ComparedPoint>& points, const config::Scenario& scenario) {
  std::vector<ReportedScore> scores;
  const config::Compare& compare = *scenario.compare;
  for (const config::ReportedFigure& figure : compare.reported)
    for (const ComparedPoint& point : points) {
      if (!config::is_at(figure, point.point->scenario)) continue;
      for (std::size_t index = 0; index < point.costs.size(); ++index) {
        const VariantCost& cost = point.costs[index];
        const std::string& name = index == 0 ? compare.baseline : compare.variants[index - 1].name;
        if (name != figure.variant || !cost.fits() || !point.costs.front().fits()) continue;
        if (!cost.figures.contains(figure.metric))
          throw InputError(scenario.file, "compare.reported: this workload has no " + figure.metric);
        scores.push_back(score(figure, point, cost));
      }
    }
  return scores;
}

}  // namespace dculab::study
