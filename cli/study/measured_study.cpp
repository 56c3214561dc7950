#include "cli/study/measured_study.hpp"

#include <cmath>
#include <optional>

#include "config/unit_text.hpp"
#include "present/study/held_out_report.hpp"
#include "present/values/machine_figures.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/measure/measured_sweep.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::cli {
namespace {

void add_held_out_rows(const study::MeasuredSweep& sweep, present::Report& report) {
  present::Table table;
  table.title = "Held-out steps: what the simulator, calibrated on the others, predicts";
  for (const auto& [key, value] : sweep.step_points.front()->choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"predicted", "measured", "ratio", "bound", "90 % interval", "run-to-run"})
    table.columns.emplace_back(column);
  report.json["points"] = present::Json::array();
  for (const study::HeldOutStep& step : sweep.held_out) {
    const Seconds measured = step.measured->duration;
    const double ratio = step.predicted / measured, spread = step.measured->spread / measured;
    std::vector<present::Cell> row;
    for (const auto& [key, value] : step.point->choices) row.emplace_back(value);
    row.emplace_back(config::short_text(step.predicted), step.predicted.value());
    row.emplace_back(config::short_text(measured), measured.value());
    row.emplace_back(present::number(ratio), ratio);
    row.emplace_back(step.bound);
    row.emplace_back(config::short_text(step.trust.low) + " .. " + config::short_text(step.trust.high));
    row.emplace_back("± " + present::percent(spread, 2), spread);
    table.rows.push_back(std::move(row));
    report.json["points"].push_back({{"id", study::point_label(*step.point)},
                                     {"predicted_seconds", step.predicted.value()},
                                     {"measured_seconds", measured.value()},
                                     {"interval_seconds", {step.trust.low.value(), step.trust.high.value()}},
                                     {"spread_seconds", step.measured->spread.value()},
                                     {"basis", sim::name(step.trust.basis)},
                                     {"bound", step.bound}});
  }
  report.tables.push_back(std::move(table));
}

// Of all held-out steps of several processes.
void add_exchanges(const study::MeasuredSweep& sweep, present::Report& report) {
  present::Table table;
  table.title = "Of them, exchanges between the processes";
  for (const auto& [key, value] : sweep.step_points.front()->choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"predicted", "measured", "ratio", "of the step"}) table.columns.emplace_back(column);
  std::vector<double> errors;
  for (std::size_t index = 0; index < sweep.held_out.size(); ++index) {
    const study::HeldOutStep& step = sweep.held_out[index];
    if (!step.exchanges) continue;
    const study::ExchangeTimes& times = *step.exchanges;
    const double ratio = times.predicted / times.measured, share = times.measured / step.measured->duration;
    std::vector<present::Cell> row;
    for (const auto& [key, value] : step.point->choices) row.emplace_back(value);
    row.emplace_back(config::short_text(times.predicted), times.predicted.value());
    row.emplace_back(config::short_text(times.measured), times.measured.value());
    row.emplace_back(present::number(ratio), ratio);
    row.emplace_back(present::percent(share), share);
    table.rows.push_back(std::move(row));
    errors.push_back(std::abs(ratio - 1));
    report.json["points"][index]["exchange_seconds"] = {{"predicted", times.predicted.value()},
                                                        {"measured", times.measured.value()}};
  }
  if (errors.empty()) return;
  table.notes.push_back("median |error| of the exchanges " + present::percent(sim::quantile(errors, 0.5)) + ", P90 " +
                        present::percent(sim::quantile(errors, 0.9)) +
                        "; each is timed from when the last process has come to it");
  report.json["exchange_error"] = {{"count", errors.size()},
                                   {"median_abs_error", sim::quantile(errors, 0.5)},
                                   {"p90_abs_error", sim::quantile(errors, 0.9)}};
  report.tables.push_back(std::move(table));
}

void add_summary(const study::MeasuredSweep& sweep, present::Report& report) {
  const sim::HoldOutScore& score = sweep.score;
  std::vector<double> spreads;
  for (const TraceStep& step : sweep.steps) spreads.push_back(step.spread / step.duration);
  const double median_spread = sim::quantile(spreads, 0.5);
  const double p90_spread = sim::quantile(spreads, 0.9);
  std::vector<std::string>& notes = report.tables.back().notes;
  notes.push_back("calibrated on " + std::to_string(score.fitted.size()) + " steps, scored on " +
                  std::to_string(score.error.count) + " others: median |error| " +
                  present::percent(score.error.median_abs_error) + ", P90 " +
                  present::percent(score.error.p90_abs_error) + ", bias " + present::percent(score.error.bias) + "; " +
                  present::percent(score.covered) + " inside their 90 % interval");
  notes.push_back("run-to-run spread of the measurement itself (half the interquartile range): median " +
                  present::percent(median_spread) + ", P90 " + present::percent(p90_spread));
  report.json["summary"] = {{"count", score.error.count},
                            {"median_abs_error", score.error.median_abs_error},
                            {"p90_abs_error", score.error.p90_abs_error},
                            {"bias", score.error.bias},
                            {"covered_by_interval", score.covered},
                            {"median_spread", median_spread},
                            {"p90_spread", p90_spread}};
}

[[nodiscard]] std::string choice_text(sim::Choice choice) {
  return study::heads_text(choice.kv_heads) + ", block " + std::to_string(choice.block_size);
}

// Following the predicted choice, over all measured points.
void add_regret(const std::optional<sim::Regret>& regret, present::Report& report) {
  if (!regret) return;
  report.tables.back().notes.push_back("predicted best: " + choice_text(regret->predicted_best) +
                                       "; measured best: " + choice_text(regret->measured_best) + "; decision regret " +
                                       present::percent(regret->regret) + " (at worst " +
                                       present::percent(regret->worst_single) +
                                       " when each workload is decided on its own), over all measured steps");
  report.json["regret"] = {{"predicted_best", choice_text(regret->predicted_best)},
                           {"measured_best", choice_text(regret->measured_best)},
                           {"regret", regret->regret},
                           {"worst_single_workload", regret->worst_single}};
}

}  // namespace

MeasuredStudy measure_study(const config::Scenario& scenario, const sim::Machine& host, present::Report& report,
                            ProgressBar& bar) {
  study::MeasuredSweep sweep = study::measure_sweep(
      scenario, host, [&bar](const std::string& label, double share) { bar.update(label, share); });
  bar.clear();
  report.heading.push_back(host.description);
  report.heading.push_back(std::to_string(sweep.points.size()) + " steps measured: " + sweep.trace.header.timing);
  present::add_refusals(sweep.refused, sweep.trace, report);
  add_held_out_rows(sweep, report);
  add_summary(sweep, report);
  add_regret(sweep.regret, report);
  add_exchanges(sweep, report);
  sim::Machine& machine = sweep.score.fit.machine;
  report.json["machine_facts"][machine.name] = present::machine_facts(machine);
  return {std::move(sweep.trace), std::move(machine)};
}

}  // namespace dculab::cli
