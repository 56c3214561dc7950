#include "study/validate/leave_one_out.hpp"

#include <algorithm>
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

[[nodiscard]] std::string left_out_name(PointSet& set, const ReadPoint& read, const std::string& by) {
  const sim::Machine& machine = set.runs.of(read.point).machine;
  if (by == "machine") return read.point.machine;
  if (by == "family") return sim::family_of(machine);
  if (by == "vendor") return std::string(lower::name(machine.vendor));
  if (by == "source") return source_of(read.point);
  if (by == "stack") return machine.stack.name;
  return program_of(read.point);
}

void compare(PointSet& set, const std::string& source, const std::vector<const ReadPoint*>& rows,
             const sim::PointCalibration& with, const sim::PointCalibration& without,
             std::vector<SourceEffect>& effects) {
  for (const auto vendor : {lower::Vendor::nvidia, lower::Vendor::amd, lower::Vendor::hygon}) {
    const auto is_own = [&](const ReadPoint* read) { return set.runs.of(read->point).machine.vendor == vendor; };
    const auto before = without.machine_error(vendor), after = with.machine_error(vendor);
    if (std::ranges::none_of(rows, is_own) && before && after)
      effects.push_back({source, std::string(lower::name(vendor)), *after, *before});
  }
}

// The kinds of the hardware run nothing.
[[nodiscard]] bool has_one(const ReadPoint& read, const std::string& by) {
  return (by != "software" && by != "stack") || !config::is_of_hardware(read.point.kind);
}

}  // namespace

std::vector<LeftOutPoint> predict_left_out(PointSet& set, const std::string& by, std::vector<SourceEffect>* effects) {
  std::map<std::string, std::vector<const ReadPoint*>> groups;
  for (const ReadPoint& read : set.points)
    if (read.is_scored() && has_one(read, by)) groups[left_out_name(set, read, by)].push_back(&read);
  if (groups.size() < 2) throw InputError("--leave-one-out " + by + ": the points have fewer than two of them");
  std::shared_ptr<const sim::PointCalibration> all;
  if (effects != nullptr && by == "source") all = learn_from(set);
  std::vector<LeftOutPoint> scored;
  for (const auto& [name, rows] : groups) {
    const auto is_left_out = [&, &name = name](const ReadPoint& read) {
      return has_one(read, by) && left_out_name(set, read, by) == name;
    };
    const std::shared_ptr<const sim::PointCalibration> others = learn_from(set, is_left_out);
    if (all) compare(set, name, rows, *all, *others, *effects);
    Runs runs(others);
    for (const ReadPoint* read : rows) scored.push_back({name, score_point(*read, runs, false)});
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
  static const std::vector<std::string> groups{"machine", "family", "vendor", "source", "stack", "software"};
  return groups;
}

}  // namespace dculab::study
