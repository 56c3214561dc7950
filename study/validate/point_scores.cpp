#include "study/validate/point_scores.hpp"

#include <algorithm>

#include "sim/study/naive_roofline.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string note_of(const PricedAs& priced) {
  if (priced.silent.empty()) return priced.note;
  return priced.note + (priced.note.empty() ? "" : "; ") + "and teaches no file: " + priced.silent;
}

}  // namespace

ScoredRow score_point(const ReadPoint& read, Runs& runs, bool was_fitted) {
  const sim::MeasuredRun& measured_run = read.priced.measured_run;
  const sim::Machine& machine = runs.of(read.point).machine;
  const Seconds time = sim::price_run(machine, measured_run);
  const sim::Confidence trust = sim::run_confidence(machine, measured_run, time);
  const double low = measured_run.figure(trust.low);
  const double high = measured_run.figure(trust.high);
  return {.line = read.point.line,
          .id = read.point.id,
          .kind = std::string(config::name(read.point.kind)),
          .machine = read.point.machine,
          .model = read.point.model,
          .software = read.point.software,
          .measured = read.point.value,
          .predicted = measured_run.figure(time),
          .low = std::min(low, high),
          .high = std::max(low, high),
          .unit = read.point.unit,
          .basis = std::string(sim::name(was_fitted ? sim::Basis::measured : trust.basis)),
          .bound = sim::run_bound(machine, measured_run),
          .note = note_of(read.priced),
          .naive = measured_run.figure(sim::naive_roofline(machine, measured_run))};
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

Scores score_points(const PointSet& set, Runs& runs, const std::set<std::string>& fitted) {
  Scores scores = left_out_points(set);
  for (const ReadPoint& read : set.points)
    if (read.is_scored()) scores.rows.push_back(score_point(read, runs, fitted.contains(read.point.id)));
  return scores;
}

}  // namespace dculab::study
