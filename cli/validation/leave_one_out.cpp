#include "cli/validation/leave_one_out.hpp"

#include <map>

#include "cli/validation/point_scores.hpp"
#include "core/error.hpp"
#include "sim/calibration/errors.hpp"
#include "sim/compute/gpu_family.hpp"

namespace dculab::cli {
namespace {

struct LeftOut {
  std::string name;
  ScoredRow row;
};

[[nodiscard]] std::string left_out_name(const PointSet& set, const ReadPoint& read, const std::string& by) {
  if (by == "machine") return read.point.machine;
  if (by == "family") return sim::family(set.machine_of(read));
  return engine_of(read.point.software);
}

// Every point that can be scored, predicted by a calibration that saw none of its machine's (or family's, program's).
[[nodiscard]] std::vector<LeftOut> predict_left_out(const PointSet& set, const std::string& by) {
  std::map<std::string, std::vector<const ReadPoint*>> groups;
  for (const ReadPoint& read : set.points)
    if (read.is_scored()) groups[left_out_name(set, read, by)].push_back(&read);
  if (groups.size() < 2) throw InputError("--leave-one-out " + by + ": the points have fewer than two of them");
  std::vector<LeftOut> scored;
  for (const auto& [name, rows] : groups) {
    std::vector<sim::MeasuredPoint> others;
    for (const ReadPoint& read : set.points)
      if (read.is_scored() && left_out_name(set, read, by) != name) others.push_back(measured(set, read));
    const sim::PointCalibration calibration(others);
    for (const ReadPoint* read : rows) scored.push_back({name, score_point(set, *read, &calibration, false)});
  }
  return scored;
}

struct Errors {
  std::vector<double> ours, naive;
  double inside = 0;
};

void add(Errors& errors, const ScoredRow& row) {
  errors.ours.push_back(row.time_error(row.predicted));
  errors.naive.push_back(row.time_error(row.naive));
  errors.inside += row.inside() ? 1 : 0;
}

[[nodiscard]] Cell percent_cell(double value) { return {percent(value, 1), value}; }

void add_row(Table& table, Json& json, const std::string& name, const std::string& kind, const Errors& errors) {
  const sim::ErrorSummary ours = sim::summarize_errors(std::span<const double>(errors.ours));
  const sim::ErrorSummary naive = sim::summarize_errors(std::span<const double>(errors.naive));
  const double covered = errors.inside / ours.count;
  table.rows.push_back({name, kind, Cell(std::to_string(ours.count)), percent_cell(ours.median_abs_error),
                        percent_cell(ours.p90_abs_error), percent_cell(ours.bias), percent_cell(covered),
                        percent_cell(naive.median_abs_error), percent_cell(naive.bias)});
  json.push_back({{"left_out", name},
                  {"kind", kind},
                  {"count", ours.count},
                  {"median_abs_error", ours.median_abs_error},
                  {"p90_abs_error", ours.p90_abs_error},
                  {"bias", ours.bias},
                  {"inside_interval", covered},
                  {"naive_median_abs_error", naive.median_abs_error},
                  {"naive_bias", naive.bias}});
}

void add_table(const std::vector<LeftOut>& scored, const std::string& by, Report& report) {
  std::map<std::pair<std::string, std::string>, Errors> parts;
  std::map<std::string, Errors> kinds;
  Errors all;
  Json rows = Json::array();
  for (const auto& [name, row] : scored) {
    for (Errors* errors : {&parts[{name, row.kind}], &kinds[row.kind], &all}) add(*errors, row);
    rows.push_back({{"id", row.id},
                    {"predicted", row.predicted},
                    {"measured", row.measured},
                    {"low", row.low},
                    {"high", row.high},
                    {"naive", row.naive},
                    {"kind", row.kind},
                    {"machine", row.machine},
                    {"left_out", name}});
  }
  Table table;
  table.title = "Each " + by + " predicted from all others: error = predicted / measured time - 1";
  table.columns = {by,          "kind", "rows", "median |error|", "P90", "bias", "inside interval", "naive median",
                   "naive bias"};
  Json json = Json::array();
  for (const auto& [key, errors] : parts) add_row(table, json, key.first, key.second, errors);
  for (const auto& [kind, errors] : kinds) add_row(table, json, "all", kind, errors);
  add_row(table, json, "all", "all", all);
  report.tables.push_back(std::move(table));
  report.json["leave_one_out"][by] = {{"scores", std::move(json)}, {"points", std::move(rows)}};
}

}  // namespace

const std::vector<std::string>& left_out_groups() {
  static const std::vector<std::string> groups{"machine", "family", "software"};
  return groups;
}

void add_left_out_scores(const PointSet& set, const std::vector<std::string>& by, Report& report) {
  add_left_out_rows(left_out_points(set), report);
  for (const std::string& group : by) add_table(predict_left_out(set, group), group, report);
}

}  // namespace dculab::cli
