#include "study/validate/leave_one_out.hpp"

#include <map>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "lower/device.hpp"
#include "study/validate/point_scores.hpp"

namespace dculab::study {
namespace {

struct Errors {
  std::vector<double> ours, naive;
  double inside = 0;
};

void add(Errors& errors, const ScoredRow& row) {
  errors.ours.push_back(row.time_error(row.predicted));
  errors.naive.push_back(row.time_error(row.naive));
  errors.inside += row.inside() ? 1 : 0;
}

[[nodiscard]] LeftOutScore score_errors(const std::string& left_out, const std::string& kind, const Errors& errors) {
  const sim::ErrorSummary ours = sim::summarize_errors(std::span<const double>(errors.ours));
  return {left_out, kind, ours, sim::summarize_errors(std::span<const double>(errors.naive)),
          errors.inside / ours.count};
}

// Machines of one name here are built alike, as far as their files say: "compute capability 8.0", "gfx90a"; what is
// compiled for another's target counts to its family, and what says neither is alone.
[[nodiscard]] std::string family(const sim::Machine& machine) {
  if (lower::is_nvidia(machine)) return "compute capability " + machine.compute_capability;
  return machine.kernel_target.empty() ? machine.name : machine.kernel_target;
}

[[nodiscard]] std::string left_out_name(const PointSet& set, const ReadPoint& read, const std::string& by) {
  if (by == "machine") return read.point.machine;
  if (by == "family") return family(set.machine_of(read));
  return origin_of(read.point).engine;
}

}  // namespace

std::vector<LeftOutPoint> predict_left_out(const PointSet& set, const std::string& by) {
  std::map<std::string, std::vector<const ReadPoint*>> groups;
  for (const ReadPoint& read : set.points)
    if (read.is_scored()) groups[left_out_name(set, read, by)].push_back(&read);
  if (groups.size() < 2) throw InputError("--leave-one-out " + by + ": the points have fewer than two of them");
  std::vector<LeftOutPoint> scored;
  for (const auto& [name, rows] : groups) {
    std::vector<sim::MeasuredPoint> others;
    for (const ReadPoint& read : set.points)
      if (read.is_scored() && left_out_name(set, read, by) != name) others.push_back(measured(set, read));
    const sim::PointCalibration calibration(others);
    for (const ReadPoint* read : rows) scored.push_back({name, score_point(set, *read, &calibration, false)});
  }
  return scored;
}

std::vector<LeftOutScore> score_left_out(const std::vector<LeftOutPoint>& points) {
  std::map<std::pair<std::string, std::string>, Errors> parts;
  std::map<std::string, Errors> kinds;
  Errors all;
  for (const auto& [name, row] : points)
    for (Errors* errors : {&parts[{name, row.kind}], &kinds[row.kind], &all}) add(*errors, row);
  std::vector<LeftOutScore> scores;
  for (const auto& [key, errors] : parts) scores.push_back(score_errors(key.first, key.second, errors));
  for (const auto& [kind, errors] : kinds) scores.push_back(score_errors("all", kind, errors));
  scores.push_back(score_errors("all", "all", all));
  return scores;
}

const std::vector<std::string>& left_out_groups() {
  static const std::vector<std::string> groups{"machine", "family", "software"};
  return groups;
}

}  // namespace dculab::study
