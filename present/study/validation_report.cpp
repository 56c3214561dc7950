#include "present/study/validation_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "config/unit_text.hpp"
#include "present/values/leaning_report.hpp"
#include "sim/calibration/parameters.hpp"

namespace dculab::present {
namespace {

using ScoredRows = std::vector<const study::ScoredRow*>;

[[nodiscard]] Json to_json(const study::Score& score) {
  return {{"count", score.error.count},
          {"median_abs_error", score.error.median_abs_error},
          {"p90_abs_error", score.error.p90_abs_error},
          {"bias", score.error.bias},
          {"inside_interval", score.inside}};
}

[[nodiscard]] std::string figure(double value, const std::string& unit) {
  return unit == "s" ? config::short_text(Seconds(value)) : number(value) + " " + unit;
}

[[nodiscard]] Table row_table(ScoredRows rows, std::size_t worst) {
  Table table;
  table.columns = {"id", "predicted", "measured", "ratio", "90 % interval", "bound", "basis"};
  if (worst > 0 && worst < rows.size()) {
    table.title = "The " + std::to_string(worst) + " worst of " + std::to_string(rows.size()) + " rows";
    std::stable_sort(rows.begin(), rows.end(), [](const study::ScoredRow* a, const study::ScoredRow* b) {
      return std::abs(std::log(a->ratio())) > std::abs(std::log(b->ratio()));
    });
    rows.resize(worst);
  }
  for (const study::ScoredRow* row : rows)
    table.rows.push_back(
        {row->id, Cell(figure(row->predicted, row->unit), row->predicted),
         Cell(figure(row->measured, row->unit), row->measured), Cell(number(row->ratio()), row->ratio()),
         figure(row->low, row->unit) + " .. " + figure(row->high, row->unit) + (row->inside() ? "" : " !"), row->bound,
         row->basis});
  table.notes = {"! marks a measurement outside its interval."};
  return table;
}

void add_score_row(Table& table, const std::string& grouping, const std::string& name, const study::Score& score) {
  table.rows.push_back({grouping, name, Cell(std::to_string(score.error.count)),
                        Cell(percent(score.error.median_abs_error), score.error.median_abs_error),
                        Cell(percent(score.error.p90_abs_error), score.error.p90_abs_error),
                        Cell(percent(score.error.bias), score.error.bias), Cell(percent(score.inside), score.inside)});
}

void add_summary(const study::ScoreSummary& summary, Report& report) {
  Table table;
  table.title = "Summary: error = predicted / measured time - 1";
  table.columns = {"by", "", "rows", "median |error|", "P90 |error|", "bias", "inside interval"};
  Json json = to_json(summary.all);
  for (const char* by : study::kScoreGroupings) json["by_" + std::string(by)] = Json::object();
  for (const study::GroupScore& group : summary.groups) {
    json["by_" + group.by][group.name] = to_json(group.score);
    add_score_row(table, group.by, group.name, group.score);
  }
  add_score_row(table, "all", "", summary.all);
  report.tables.push_back(std::move(table));
  report.json["summary"] = std::move(json);
}

[[nodiscard]] Json points_json(const study::Scores& scores) {
  Json points = Json::array();
  for (const study::ScoredRow& row : scores.rows) {
    Json entry{
        {"id", row.id},       {"line", row.line},         {"kind", row.kind},         {"machine", row.machine},
        {"model", row.model}, {"software", row.software}, {"measured", row.measured}, {"predicted", row.predicted},
        {"unit", row.unit},   {"ratio", row.ratio()},     {"low", row.low},           {"high", row.high},
        {"basis", row.basis}, {"bound", row.bound}};
    if (!row.note.empty()) entry["note"] = row.note;
    points.push_back(std::move(entry));
  }
  return points;
}

void add_left_out(const char* what, const char* key, const std::vector<study::LeftOutRow>& rows, Report& report) {
  Json& list = report.json[key] = Json::array();
  std::vector<std::pair<const study::LeftOutRow*, int>> groups;  // the first row of each, and how many there are
  for (const study::LeftOutRow& row : rows) {
    list.push_back({{"line", row.line}, {"id", row.id}, {"reason", row.reason}});
    const auto known = std::ranges::find(groups, row.group, [](const auto& group) { return group.first->group; });
    if (known == groups.end())
      groups.emplace_back(&row, 1);
    else
      ++known->second;
  }
  for (const auto& [row, count] : groups)
    report.heading.push_back(std::string(what) + ": " + (count > 1 ? std::to_string(count) + " rows, first " : "") +
                             "row " + std::to_string(row->line) + " (" + row->id + "): " + row->reason);
}

[[nodiscard]] Cell percent_cell(double value) { return {percent(value, 1), value}; }

void add_left_out_score(Table& table, Json& json, const study::LeftOutScore& score) {
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

void add_left_out_table(const std::vector<study::LeftOutPoint>& scored, const std::string& by, Report& report) {
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
  for (const study::LeftOutScore& score : study::score_left_out(scored)) add_left_out_score(table, json, score);
  report.tables.push_back(std::move(table));
  report.json["leave_one_out"][by] = {{"scores", std::move(json)}, {"points", std::move(rows)}};
}

// Those that change most.
void add_source_effects(std::vector<study::SourceEffect> effects, Report& report) {
  constexpr std::size_t kShown = 10;
  std::ranges::sort(effects, std::greater(), [](const study::SourceEffect& each) { return each.with - each.without; });
  Table table;
  table.title = "What a source does to other vendors: median |error| of their machines, each left out in turn";
  table.columns = {"source", "vendor", "with it", "without it", "change (points)"};
  for (const study::SourceEffect& each : effects) {
    report.json["source_effects"].push_back(
        {{"source", each.source}, {"vendor", each.vendor}, {"with", each.with}, {"without", each.without}});
    if (table.rows.size() < kShown)
      table.rows.push_back({each.source, each.vendor, percent_cell(each.with), percent_cell(each.without),
                            Cell(number(100 * (each.with - each.without), 2), 100 * (each.with - each.without))});
  }
  table.notes.push_back("the " + std::to_string(table.rows.size()) + " largest of " + std::to_string(effects.size()));
  report.tables.push_back(std::move(table));
}

void add_scores(const study::Scores& scores, int worst, Format format, Report& report) {
  ScoredRows rows;
  std::set<std::string> notes;
  for (const study::ScoredRow& row : scores.rows) {
    rows.push_back(&row);
    if (!row.note.empty()) notes.insert(row.note);
  }
  add_left_out_rows(scores, report);
  report.json["points"] = points_json(scores);
  report.tables.push_back(row_table(rows, format == Format::table ? static_cast<std::size_t>(worst) : 0));
  for (const std::string& note : notes) report.tables.back().notes.push_back("priced " + note);
  add_summary(study::summarize(scores.rows), report);
}

}  // namespace

void add_left_out_rows(const study::Scores& scores, Report& report) {
  add_left_out("refused", "refused", scores.refused, report);
  add_left_out("not priced", "not_priced", scores.unpriced, report);
}

void add_fitted_errors(const study::ScoreSummary& before, const study::ScoreSummary& after, Report& report) {
  Table table;
  table.title = "Errors of the points that were fitted, which are no forecast of others'";
  table.columns = {"kind", "rows", "median |error|", "after the fit", "bias", "after the fit"};
  const auto add = [&](const std::string& kind, const study::Score& first, const study::Score& second) {
    table.rows.push_back({kind, Cell(std::to_string(first.error.count)), percent_cell(first.error.median_abs_error),
                          percent_cell(second.error.median_abs_error), percent_cell(first.error.bias),
                          percent_cell(second.error.bias)});
    report.json["before"][kind] = to_json(first);
    report.json["after"][kind] = to_json(second);
  };
  for (std::size_t group = 0; group < before.groups.size(); ++group)
    if (before.groups[group].by == "kind")
      add(before.groups[group].name, before.groups[group].score, after.groups[group].score);
  add("all", before.all, after.all);
  report.tables.push_back(std::move(table));
}

void add_effects(const sim::PointCalibration& calibration, Report& report) {
  Json& groups = report.json["fitted"] = Json::object();
  for (const auto& [name, added] : calibration.effects()) {
    Json& entry = groups[name] = Json::object();
    for (std::size_t index = 0; index < sim::parameters().size(); ++index)
      entry[std::string(sim::parameters()[index].key)] = std::exp(added[index]);
    entry["time"] = std::exp(added.back());
  }
  report.heading.push_back("calibrated on " + std::to_string(calibration.points()) + " points");
}

void add_validation(const study::Validation& validation, int worst, Format format, Report& report) {
  if (validation.calibration) add_effects(*validation.calibration, report);
  if (validation.seen > 0)
    report.heading.push_back("warning: " + std::to_string(validation.seen) +
                             " of these points were fitted, so that their errors " +
                             "are no forecast; --leave-one-out predicts each machine's from those of the others");
  add_scores(validation.scores, worst, format, report);
  for (const auto& [name, priced] : validation.priced)
    report.json["leans_on"][name] = add_leanings(priced.machine, study::leanings_of(priced), report);
}

void add_left_out_scores(const std::string& by, const std::vector<study::LeftOutPoint>& points,
                         std::vector<study::SourceEffect> effects, Report& report) {
  add_left_out_table(points, by, report);
  if (!effects.empty()) add_source_effects(std::move(effects), report);
}

}  // namespace dculab::present
