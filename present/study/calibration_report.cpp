#include "present/study/calibration_report.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/calibration_fields.hpp"

namespace dculab::present {
namespace {

constexpr const char* kCalibrateSchema = "dculab/calibrate/1";

[[nodiscard]] std::string fit_error_text(const sim::ErrorSummary& error) {
  return std::to_string(error.count) + " steps, median |error| " + percent(error.median_abs_error) + ", P90 " +
         percent(error.p90_abs_error) + ", bias " + percent(error.bias);
}

void note_fit_error(const char* of, const sim::ErrorSummary& error, Report& report) {
  report.tables.back().notes.push_back(std::string(of) + ": " + fit_error_text(error));
}

void add_learned_intervals(const std::vector<study::LearnedIntervals>& learned, Report& report) {
  Table table;
  table.title = "90 % intervals: a measurement lies between the prediction / factor and the prediction x factor";
  table.columns = {"machine", "stack", "rows"};
  for (const auto& [name, kind] : sim::kPriceKinds)
    if (kind != sim::PriceKind::hardware) table.columns.emplace_back(name);
  for (const auto& [machine, stack, intervals] : learned) {
    Row row{machine, stack, std::to_string(intervals.rows)};
    for (const auto& [word, kind] : sim::kPriceKinds)
      if (kind != sim::PriceKind::hardware) row.emplace_back(number(intervals.factors.at(kind)));
    table.rows.push_back(std::move(row));
  }
  report.tables.push_back(std::move(table));
}

}  // namespace

std::string parameter_text(const std::string& key, double value) {
  const bool is_time =
      key.starts_with("overheads.") || key.starts_with("stack.host.") || key == "stack.reached.block_lookup";
  return is_time ? config::short_text(Seconds(value)) : number(value);
}

Table parameter_table(const std::vector<sim::FittedParameter>& parameters) {
  Table table;
  table.columns = {"parameter", "prior", "fitted", "one std. deviation", ""};
  const bool is_any_confounded =
      std::ranges::any_of(parameters, [](const auto& parameter) { return parameter.confounded_with.has_value(); });
  if (is_any_confounded) table.columns.emplace_back("confounded with");
  for (const sim::FittedParameter& parameter : parameters) {
    const auto text = [&parameter](double value) { return parameter_text(parameter.key, value); };
    Row& row = table.rows.emplace_back(Row{parameter.key, text(parameter.prior), text(parameter.value),
                                           text(parameter.low()) + " .. " + text(parameter.high()),
                                           study::is_identified(parameter) ? "" : "not identified"});
    if (is_any_confounded) row.push_back(parameter.confounded_with.value_or(""));
  }
  if (!std::ranges::all_of(parameters, study::is_identified))
    table.notes.emplace_back("not identified: these measurements say little of it, and it stays near its prior");
  if (is_any_confounded)
    table.notes.emplace_back(
        "confounded with: that one makes up for it in good part; a load that has more of one of the two tells them "
        "apart");
  return table;
}

Report trace_calibration_report(const std::string& machine, const study::BelievedSteps& believed,
                                const study::TraceCalibration& calibration) {
  Report report{kCalibrateSchema, study::grouped_lines("refused", believed.refused), {}, Json::object()};
  add_warnings(report, believed.warnings);
  ReportedTraceCalibration reported{machine, believed, calibration};
  report.tables.push_back(parameter_table(calibration.fit.parameters));
  note_fit_error("fitted", calibration.fit.error, report);
  if (const auto& score = calibration.held_out) {
    note_fit_error("held_out", score->error, report);
    reported.held_out_ops = add_held_out_ops(*score, believed.steps, report);
    reported.regret = add_block_size_regret(*score, believed.steps, report);
  }
  report.tables.front().notes.push_back("90 % interval of a prediction: × or ÷ " +
                                        number(calibration.interval_factor()) +
                                        " (conformal, five-fold cross-validation)");
  set_answer(reported, report);
  return report;
}

std::vector<FittedError> fitted_errors(const study::ScoreSummary& before, const study::ScoreSummary& after) {
  std::vector<FittedError> errors;
  for (std::size_t group = 0; group < before.groups.size(); ++group)
    if (before.groups[group].by == "kind")
      errors.push_back({before.groups[group].name, before.groups[group].score, after.groups[group].score});
  errors.push_back({"all", before.all, after.all});
  return errors;
}

Report points_calibration_report(const PointsCalibration& calibration) {
  Report report = report_of(kCalibrateSchema, calibration);
  add_left_out_lines(calibration.left_out, report);
  add_learned_line(calibration.learned, report);
  add_fitted_errors(calibration.errors, report);
  add_learned_intervals(calibration.intervals, report);
  report.tables.back().notes.push_back(
      "wrote " + std::to_string(calibration.files.size()) + " machine and stack files below " + calibration.folder +
      "; every command reads them with DCULAB_DATA=" + calibration.folder + " in the environment");
  return report;
}

}  // namespace dculab::present
