#include "present/study/validation_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/conclusion.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/validation_fields.hpp"
#include "sim/calibration/parameters.hpp"

namespace dculab::present {
namespace {

using ScoredRows = std::vector<const study::ScoredRow*>;

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
        {row->id, figure(row->predicted, row->unit), figure(row->measured, row->unit), number(row->ratio()),
         figure(row->low, row->unit) + " .. " + figure(row->high, row->unit) + (row->inside() ? "" : " !"), row->bound,
         row->basis});
  table.notes = {"! marks a measurement outside its interval."};
  return table;
}

void add_score_row(Table& table, const std::string& grouping, const std::string& name, const study::Score& score) {
  table.rows.push_back({grouping, name, std::to_string(score.error.count), percent(score.error.median_abs_error),
                        percent(score.error.p90_abs_error), percent(score.error.bias), percent(score.inside)});
}

void add_summary(const study::ScoreSummary& summary, Report& report) {
  Table table;
  table.title = "Summary: error = predicted / measured time - 1";
  table.columns = {"by", "", "rows", "median |error|", "P90 |error|", "bias", "inside interval"};
  for (const study::GroupScore& group : summary.groups) add_score_row(table, group.by, group.name, group.score);
  add_score_row(table, "all", "", summary.all);
  report.tables.push_back(std::move(table));
}

void add_lines(const std::vector<std::string>& lines, Report& report) {
  report.heading.insert(report.heading.end(), lines.begin(), lines.end());
}

// What the summary comes to.
[[nodiscard]] std::string verdict_on(const study::Score& all, std::size_t refused) {
  const std::string left_out = refused == 0 ? ""
                                            : " " + counted(static_cast<std::ptrdiff_t>(refused), "row") +
                                                  " refused: faster than the machine allows.";
  const std::string bias = percent(std::abs(all.error.bias)) + (all.error.bias < 0 ? " too short" : " too long");
  return counted(all.error.count, "row") + ": predicted times are " + percent(all.error.median_abs_error) +
         " off in the median, and " + bias + " in the mean; " + percent(all.inside) +
         " of the measurements are inside their 90 % interval." + left_out;
}

[[nodiscard]] std::string percent_cell(double value) { return percent(value, 1); }

void add_left_out_table(const std::string& by, const std::vector<study::LeftOutScore>& scores, Report& report) {
  Table table;
  table.title = "Each " + by + " predicted from all others: error = predicted / measured time - 1";
  table.columns = {by,          "kind", "rows", "median |error|", "P90", "bias", "inside interval", "naive median",
                   "naive bias"};
  for (const study::LeftOutScore& score : scores) {
    const sim::ErrorSummary& ours = score.ours;
    const sim::ErrorSummary& naive = score.naive;
    table.rows.push_back({score.left_out, score.kind, std::to_string(ours.count), percent_cell(ours.median_abs_error),
                          percent_cell(ours.p90_abs_error), percent_cell(ours.bias), percent_cell(score.inside),
                          percent_cell(naive.median_abs_error), percent_cell(naive.bias)});
  }
  report.tables.push_back(std::move(table));
}

// Those that change most.
void add_source_effects(const std::vector<study::SourceEffect>& effects, Report& report) {
  constexpr std::size_t kShown = 10;
  Table table;
  table.title = "What a source does to other vendors: median |error| of their machines, each left out in turn";
  table.columns = {"source", "vendor", "with it", "without it", "change (points)"};
  for (const study::SourceEffect& each : std::span(effects).first(std::min(kShown, effects.size())))
    table.rows.push_back({each.source, each.vendor, percent_cell(each.with), percent_cell(each.without),
                          number(100 * (each.with - each.without), 2)});
  table.notes.push_back("the " + std::to_string(table.rows.size()) + " largest of " + std::to_string(effects.size()));
  report.tables.push_back(std::move(table));
}

void add_rows(const study::Scores& scores, int worst, Report& report) {
  ScoredRows rows;
  std::set<std::string> notes;
  for (const study::ScoredRow& row : scores.rows) {
    rows.push_back(&row);
    if (!row.note.empty()) notes.insert(row.note);
  }
  add_left_out_lines(scores, report);
  report.tables.push_back(row_table(rows, static_cast<std::size_t>(worst)));
  for (const std::string& note : notes) report.tables.back().notes.push_back("predicted " + note);
}

}  // namespace

LearnedFactors learned_factors(const sim::PointCalibration& calibration) {
  LearnedFactors factors;
  for (const auto& [name, added] : calibration.effects()) {
    auto& group = factors.emplace_back(name, std::vector<std::pair<std::string, double>>{}).second;
    for (std::size_t index = 0; index < sim::parameters().size(); ++index)
      group.emplace_back(sim::parameters()[index].key, std::exp(added[index]));
    group.emplace_back("time", std::exp(added.back()));
  }
  return factors;
}

void add_left_out_lines(const study::Scores& scores, Report& report) {
  add_lines(study::grouped_lines("refused", scores.refused), report);
  add_lines(study::grouped_lines("not predicted", scores.unpriced), report);
}

void add_learned_line(const sim::PointCalibration& calibration, Report& report) {
  report.heading.push_back("calibrated on " + std::to_string(calibration.points()) + " points");
}

void add_fitted_errors(const std::vector<FittedError>& errors, Report& report) {
  Table table;
  table.title = "Errors of the points that were fitted, which are no forecast of others'";
  table.columns = {"kind", "rows", "median |error|", "after the fit", "bias", "after the fit"};
  for (const auto& [kind, first, second] : errors)
    table.rows.push_back({kind, std::to_string(first.error.count), percent_cell(first.error.median_abs_error),
                          percent_cell(second.error.median_abs_error), percent_cell(first.error.bias),
                          percent_cell(second.error.bias)});
  report.tables.push_back(std::move(table));
}

Report validation_report(const study::Validation& validation, int worst) {
  Report report{kValidateSchema, {}, {}, Json::object()};
  if (validation.calibration) add_learned_line(*validation.calibration, report);
  if (validation.seen > 0)
    report.heading.push_back("warning: " + std::to_string(validation.seen) +
                             " of these points were fitted, so that their errors " +
                             "are no forecast; --leave-one-out predicts each machine's from those of the others");
  add_warnings(report, validation.warnings);
  ReportedValidation reported{validation, study::summarize(validation.scores.rows)};
  add_rows(validation.scores, worst, report);
  add_summary(reported.summary, report);
  for (const auto& [name, priced] : validation.priced) {
    if (!reported.input_sensitivity) reported.input_sensitivity.emplace();
    const auto input_sensitivities = study::input_sensitivities_of(priced);
    reported.input_sensitivity->emplace_back(name, std::vector<ReportedInputSensitivity>{});
    if (!input_sensitivities) continue;
    if (!reported.machine_facts) reported.machine_facts.emplace();
    set_of_machine(*reported.machine_facts, priced.machine.name, machine_facts(priced.machine));
    reported.input_sensitivity->back().second =
        note_input_sensitivities(priced.machine, *input_sensitivities, report.tables.back());
  }
  set_answer(reported, report);
  conclude(report, verdict_on(reported.summary.all, validation.scores.refused.size()));
  return report;
}

Report left_out_report(const study::Scores& left_out_rows, std::vector<LeftOutGroup> groups) {
  Report report{kValidateSchema, {}, {}, Json::object()};
  ReportedLeaveOneOut reported{left_out_rows, {}};
  add_left_out_lines(left_out_rows, report);
  for (LeftOutGroup& group : groups) {
    reported.groups.emplace_back(group.by, ReportedLeftOut{study::score_left_out(group.points), group.points});
    add_left_out_table(group.by, reported.groups.back().second.scores, report);
    if (group.effects.empty()) continue;
    const auto change = [](const study::SourceEffect& each) { return each.with - each.without; };
    std::ranges::sort(group.effects, std::greater(), change);
    add_source_effects(group.effects, report);
    reported.source_effects = std::move(group.effects);
  }
  set_answer(reported, report);
  return report;
}

}  // namespace dculab::present
