#include "present/measure/measured_report.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "config/unit_text.hpp"
#include "present/measure/measured_serving_fields.hpp"
#include "present/measure/served_study.hpp"
#include "present/output/conclusion.hpp"
#include "present/output/field_csv.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::present {
namespace {

void add_held_out_rows(const study::MeasuredSweep& sweep, Report& report) {
  Table table;
  table.title = "Held-out steps: what the simulator, calibrated on the others, predicts";
  for (const auto& [key, value] : sweep.step_points.front()->choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"predicted", "measured", "ratio", "bound", "90 % interval", "run-to-run"})
    table.columns.emplace_back(column);
  for (const study::HeldOutStep& step : sweep.held_out) {
    const Seconds measured = step.measured->duration;
    const double ratio = step.predicted / measured, spread = step.measured->spread / measured;
    Row row;
    for (const auto& [key, value] : step.point->choices) row.emplace_back(value);
    row.emplace_back(config::short_text(step.predicted));
    row.emplace_back(config::short_text(measured));
    row.emplace_back(number(ratio));
    row.emplace_back(step.bound);
    row.emplace_back(config::short_text(step.trust.low) + " .. " + config::short_text(step.trust.high));
    row.emplace_back("± " + percent(spread, 2));
    table.rows.push_back(std::move(row));
  }
  report.tables.push_back(std::move(table));
}

// Of all held-out steps of several processes.
void add_exchanges(const study::MeasuredSweep& sweep, Report& report) {
  if (!sweep.exchange_errors) return;
  Table table;
  table.title = "Of them, exchanges between the processes";
  for (const auto& [key, value] : sweep.step_points.front()->choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"predicted", "measured", "ratio", "of the step"}) table.columns.emplace_back(column);
  for (const study::HeldOutStep& step : sweep.held_out) {
    if (!step.exchanges) continue;
    const study::ExchangeTimes& times = *step.exchanges;
    const double ratio = times.predicted / times.measured, share = times.measured / step.measured->duration;
    Row row;
    for (const auto& [key, value] : step.point->choices) row.emplace_back(value);
    row.emplace_back(config::short_text(times.predicted));
    row.emplace_back(config::short_text(times.measured));
    row.emplace_back(number(ratio));
    row.emplace_back(percent(share));
    table.rows.push_back(std::move(row));
  }
  const study::ExchangeErrors& errors = *sweep.exchange_errors;
  table.notes.push_back("median |error| of the exchanges " + percent(errors.median) + ", P90 " + percent(errors.p90) +
                        "; each is timed from when the last process has come to it");
  report.tables.push_back(std::move(table));
}

void add_sweep_summary(const study::MeasuredSweep& sweep, Report& report) {
  const sim::HoldOutScore& score = sweep.score;
  std::vector<std::string>& notes = report.tables.back().notes;
  notes.push_back("calibrated on " + std::to_string(score.fitted.size()) + " steps, scored on " +
                  std::to_string(score.error.count) + " others: median |error| " +
                  percent(score.error.median_abs_error) + ", P90 " + percent(score.error.p90_abs_error) + ", bias " +
                  percent(score.error.bias) + "; " + percent(score.covered) + " inside their 90 % interval");
  notes.push_back("run-to-run spread of the measurement itself (half the interquartile range): median " +
                  percent(sweep.spread.median) + ", P90 " + percent(sweep.spread.p90));
}

[[nodiscard]] std::string measured_choice_text(sim::Choice choice) {
  return study::heads_text(choice.kv_heads) + ", block " + std::to_string(choice.block_size);
}

// Following the predicted choice, over all measured points.
void add_regret(const std::optional<sim::Regret>& regret, Report& report) {
  if (!regret) return;
  report.tables.back().notes.push_back("predicted best: " + measured_choice_text(regret->predicted_best) +
                                       "; measured best: " + measured_choice_text(regret->measured_best) +
                                       "; decision regret " + percent(regret->regret) + " (at worst " +
                                       percent(regret->worst_single) +
                                       " when each workload is decided on its own), over all measured steps");
}

// How far the predictions of this machine may be trusted, and what came of following them.
void conclude_sweep(const study::MeasuredSweep& sweep, const std::string& model, Report& report) {
  const sim::HoldOutScore& score = sweep.score;
  conclude(report, "Predictions of this machine are off by " + percent(score.error.median_abs_error) + " (median of " +
                       std::to_string(score.error.count) +
                       " steps that the fit had not seen; two runs of a step differ by " +
                       percent(sweep.spread.median) + ").");
  if (!sweep.regret) return;
  const sim::Regret& regret = *sweep.regret;
  const std::string predicted =
      "Here " + model + " is predicted to be fastest with " + measured_choice_text(regret.predicted_best);
  conclude(report, regret.predicted_best == regret.measured_best
                       ? predicted + ", and so it was measured."
                       : predicted + "; measured, that is " + percent(regret.regret) + " slower than the best, " +
                             measured_choice_text(regret.measured_best) + ".");
}

void add_speed_ups(const std::vector<study::MeasuredSpeedUp>& speed_ups, const std::vector<config::SweepPoint>& points,
                   const config::Compare& compare, Report& report) {
  Table table;
  table.title =
      "Speed-up over " + compare.baseline + ": predicted by a fit to " + compare.baseline + " alone, measured";
  for (const auto& [key, value] : points.front().choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"variant", "measured step", "predicted", "measured", "in single rounds", "points apart"})
    table.columns.emplace_back(column);
  for (const study::MeasuredSpeedUp& each : speed_ups) {
    const std::string& name = compare.variants[each.variant].name;
    Row row;
    for (const auto& [key, value] : points[each.point].choices) row.emplace_back(value);
    row.emplace_back(name);
    row.emplace_back(config::short_text(each.step));
    row.emplace_back(number(each.predicted) + "x");
    row.emplace_back(number(each.measured) + "x");
    row.emplace_back(number(each.lowest) + " to " + number(each.highest) + "x");
    row.emplace_back(number(100 * std::abs(each.predicted - each.measured), 2));
    table.rows.push_back(std::move(row));
  }
  report.tables.push_back(std::move(table));
}

[[nodiscard]] Table compared_drafts_table(const std::vector<study::ComparedDraft>& points) {
  Table table;
  table.title = "What drafts are worth: predicted from steps without drafts, and measured";
  for (const auto& [key, value] : points.front().choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"tokens a step", "plain step", "verify", "drafting", "p/m plain", "p/m verify",
                             "p/m drafting", "predicted", "measured", "ratio", "run-to-run"})
    table.columns.emplace_back(column);
  for (const study::ComparedDraft& point : points) {
    const study::DraftedTimes& times = point.predicted.times;
    const engine::MeasuredDraft& measured = point.measured;
    Row row;
    for (const auto& [key, value] : point.choices) row.emplace_back(value);
    row.emplace_back(number(measured.tokens));
    for (const Seconds time : {measured.plain, measured.verify, measured.drafting})
      row.emplace_back(config::short_text(time));
    for (const double part :
         {times.plain / measured.plain, times.verify / measured.verify, times.drafting / measured.drafting})
      row.emplace_back(number(part));
    for (const double figure : {point.predicted_speed_up(), measured.speed_up, point.ratio()})
      row.emplace_back(number(figure));
    row.emplace_back("± " + percent(measured.spread / measured.speed_up, 2));
    table.rows.push_back(std::move(row));
  }
  return table;
}

void add_compared_drafts(const std::vector<study::ComparedDraft>& points, Report& report) {
  const study::DraftErrors errors = study::errors_of(points);
  Table table = compared_drafts_table(points);
  table.notes.push_back("speed-up: median |error| " + percent(errors.median) + ", largest " + percent(errors.largest) +
                        "; " + std::to_string(errors.within_10) + " of " + std::to_string(errors.count) +
                        " within 10 %");
  table.notes.emplace_back(
      "p/m: predicted over measured; verify: the step that judges a draft of each sequence; "
      "predicted: with the tokens a step that were accepted");
  report.tables.push_back(std::move(table));
}

void add_lines(const std::vector<std::string>& lines, Report& report) {
  report.heading.insert(report.heading.end(), lines.begin(), lines.end());
}

void add_found(const study::MeasuredSweep& found, const config::Scenario& scenario, const study::MeasuredStudy& study,
               Report& report) {
  report.heading.push_back(study.host);
  report.heading.push_back(std::to_string(found.points.size()) + " steps measured: " + found.trace.header.timing);
  add_lines(study::refusal_lines(found.refused, found.trace), report);
  add_held_out_rows(found, report);
  add_sweep_summary(found, report);
  add_regret(found.regret, report);
  add_exchanges(found, report);
  set_answer(found, report);
  conclude_sweep(found, scenario.model.name, report);
}

void add_found(const study::MeasuredComparison& found, const config::Scenario& scenario,
               const study::MeasuredStudy& study, Report& report) {
  report.heading.push_back(study.host);
  add_speed_ups(found.speed_ups, study.sweep, *scenario.compare, report);
  set_answer(ReportedSpeedUps{found, study.sweep, *scenario.compare}, report);
}

void add_found(const study::MeasuredDrafts& found, const config::Scenario&, const study::MeasuredStudy& study,
               Report& report) {
  add_lines(study::refusal_lines(found.refused, found.plain), report);
  report.heading.push_back(study.host);
  report.heading.push_back(std::to_string(found.plain.steps.size()) +
                           " steps without drafts calibrate: " + found.plain.header.timing);
  add_compared_drafts(found.points, report);
  set_answer(found, report);
}

void add_found(const study::ServedStudy& found, const config::Scenario& scenario, const study::MeasuredStudy& study,
               Report& report) {
  report.heading.push_back(study.host);
  add_served_study(found, study.sweep.front(), scenario.measure.repeats, report);
  set_answer(found, report);
}

}  // namespace

void add_measured_study(const config::Scenario& scenario, const study::MeasuredStudy& study, Report& report) {
  std::visit([&](const auto& found) { add_found(found, scenario, study, report); }, study.found);
}

}  // namespace dculab::present
