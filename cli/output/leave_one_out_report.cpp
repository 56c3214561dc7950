#include "cli/output/leave_one_out_report.hpp"

#include <utility>

#include "cli/output/score_report.hpp"
#include "study/validate/leave_one_out.hpp"
#include "study/validate/point_scores.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] Cell percent_cell(double value) { return {percent(value, 1), value}; }

void add_row(Table& table, Json& json, const study::LeftOutScore& score) {
  const sim::ErrorSummary& ours = score.ours;
  const sim::ErrorSummary& naive = score.naive;
  table.rows.push_back({score.left_out, score.kind, Cell(std::to_string(ours.count)),
                        percent_cell(ours.median_abs_error), percent_cell(ours.p90_abs_error), percent_cell(ours.bias),
                        percent_cell(score.inside), percent_cell(naive.median_abs_error), percent_cell(naive.bias)});
  json.push_back({{"left_out", score.left_out},
                  {"kind", score.kind},
                  {"count", ours.count},
                  {"median_abs_error", ours.median_abs_error},
                  {"p90_abs_error", ours.p90_abs_error},
                  {"bias", ours.bias},
                  {"inside_interval", score.inside},
                  {"naive_median_abs_error", naive.median_abs_error},
                  {"naive_bias", naive.bias}});
}

void add_table(const std::vector<study::LeftOutPoint>& scored, const std::string& by, Report& report) {
  Json rows = Json::array();
  for (const auto& [name, row] : scored)
    rows.push_back({{"id", row.id},
                    {"predicted", row.predicted},
                    {"measured", row.measured},
                    {"low", row.low},
                    {"high", row.high},
                    {"naive", row.naive},
                    {"kind", row.kind},
                    {"machine", row.machine},
                    {"left_out", name}});
  Table table;
  table.title = "Each " + by + " predicted from all others: error = predicted / measured time - 1";
  table.columns = {by,          "kind", "rows", "median |error|", "P90", "bias", "inside interval", "naive median",
                   "naive bias"};
  Json json = Json::array();
  for (const study::LeftOutScore& score : study::score_left_out(scored)) add_row(table, json, score);
  report.tables.push_back(std::move(table));
  report.json["leave_one_out"][by] = {{"scores", std::move(json)}, {"points", std::move(rows)}};
}

}  // namespace

void add_left_out_scores(const study::PointSet& set, const std::vector<std::string>& by, Report& report) {
  add_left_out_rows(study::left_out_points(set), report);
  for (const std::string& group : by) add_table(study::predict_left_out(set, group), group, report);
}

}  // namespace dculab::cli
