#include "study/validate/point_scores.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "sim/study/naive_roofline.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] sim::PointPrediction predict(const PointSet& set, const ReadPoint& read,
                                           const sim::PointCalibration* calibration) {
  const sim::Machine& machine = set.machine_of(read);
  const sim::Recipe& recipe = read.priced.recipe;
  if (calibration != nullptr)
    return calibration->predict(machine, origin_of(read.point), std::string(config::name(read.point.kind)), recipe);
  const Seconds time = sim::price_recipe(machine, recipe);
  return {time, sim::recipe_confidence(machine, recipe, time)};
}

}  // namespace

ScoredRow score_point(const PointSet& set, const ReadPoint& read, const sim::PointCalibration* calibration,
                      bool was_fitted) {
  const sim::Recipe& recipe = read.priced.recipe;
  const sim::Machine& file = set.machine_of(read);
  const sim::Machine machine = calibration == nullptr ? file : calibration->machine(file, origin_of(read.point));
  const sim::PointPrediction predicted = predict(set, read, calibration);
  const double low = recipe.figure(predicted.trust.low);
  const double high = recipe.figure(predicted.trust.high);
  return {.line = read.point.line,
          .id = read.point.id,
          .kind = std::string(config::name(read.point.kind)),
          .machine = read.point.machine,
          .model = read.point.model,
          .software = read.point.software,
          .measured = read.point.value,
          .predicted = recipe.figure(predicted.time),
          .low = std::min(low, high),
          .high = std::max(low, high),
          .unit = read.point.unit,
          .basis = std::string(sim::name(was_fitted ? sim::Basis::measured : predicted.trust.basis)),
          .bound = sim::recipe_bound(machine, recipe),
          .note = read.priced.note,
          .naive = recipe.figure(sim::naive_roofline(file, recipe))};
}

Scores left_out_points(const PointSet& set) {
  Scores scores;
  for (const ReadPoint& read : set.points) {
    if (!read.unpriced.empty())
      scores.unpriced.push_back({read.point.line, read.point.id, read.unpriced, read.unpriced});
    else if (!read.refused.empty())
      scores.refused.push_back({read.point.line, read.point.id, read.refused, read.point.machine});
  }
  return scores;
}

Scores score_points(const PointSet& set, const sim::PointCalibration* calibration,
                    const std::set<std::string>& fitted) {
  Scores scores = left_out_points(set);
  for (const ReadPoint& read : set.points)
    if (read.is_scored()) scores.rows.push_back(score_point(set, read, calibration, fitted.contains(read.point.id)));
  return scores;
}

sim::PointCalibration calibrate_on(const PointSet& set, std::set<std::string>& used) {
  std::vector<sim::MeasuredPoint> points;
  for (const ReadPoint& read : set.points) {
    if (!read.is_scored()) continue;
    points.push_back(measured(set, read));
    used.insert(read.point.id);
  }
  if (points.empty()) throw InputError("--calibrate-on: no point of the file can be priced");
  return sim::PointCalibration(points);
}

}  // namespace dculab::study
