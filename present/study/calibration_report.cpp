#include "present/study/calibration_report.hpp"

#include <string>
#include <utility>

#include "config/unit_text.hpp"
#include "present/study/held_out_report.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string parameter_text(const std::string& key, double value) {
  const bool is_time = key.starts_with("overheads.") || key == "stack.reached.block_lookup";
  return is_time ? config::short_text(Seconds(value)) : number(value);
}

void add_parameters(const sim::Fit& fit, Report& report) {
  Table table;
  table.columns = {"parameter", "prior", "fitted", "± (log)", ""};
  for (const sim::FittedParameter& parameter : fit.parameters) {
    const bool identified = study::is_identified(parameter);
    table.rows.push_back({parameter.key, Cell(parameter_text(parameter.key, parameter.prior), parameter.prior),
                          Cell(parameter_text(parameter.key, parameter.value), parameter.value),
                          Cell(number(parameter.log_sigma, 2), parameter.log_sigma),
                          identified ? "" : "not identified by these traces"});
    report.json["parameters"].push_back({{"key", parameter.key},
                                         {"prior", parameter.prior},
                                         {"value", parameter.value},
                                         {"log_sigma", parameter.log_sigma},
                                         {"identified", identified}});
  }
  report.tables.push_back(std::move(table));
}

[[nodiscard]] std::string fit_error_text(const sim::ErrorSummary& error) {
  return std::to_string(error.count) + " steps, median |error| " + percent(error.median_abs_error) + ", P90 " +
         percent(error.p90_abs_error) + ", bias " + percent(error.bias);
}

void add_fit_error(const char* key, const sim::ErrorSummary& error, Report& report) {
  report.tables.back().notes.push_back(std::string(key) + ": " + fit_error_text(error));
  report.json[key] = {{"count", error.count},
                      {"median_abs_error", error.median_abs_error},
                      {"p90_abs_error", error.p90_abs_error},
                      {"bias", error.bias}};
}

}  // namespace

void add_calibration(const study::BelievedSteps& believed, const study::TraceCalibration& calibration, Report& report) {
  add_refusals(believed.refused, report);
  add_parameters(calibration.fit, report);
  add_fit_error("fitted", calibration.fit.error, report);
  if (const auto& score = calibration.held_out) {
    add_fit_error("held_out", score->error, report);
    add_held_out_ops(*score, believed.steps, report);
    add_block_size_regret(*score, believed.steps, report);
  }
  const double factor = calibration.interval_factor();
  report.tables.front().notes.push_back("90 % interval of a prediction: × or ÷ " + number(factor) +
                                        " (conformal, five-fold cross-validation)");
  report.json["interval_factor"] = factor;
}

void add_learned_intervals(const std::vector<study::LearnedIntervals>& learned, Report& report) {
  Table table;
  table.title = "90 % intervals: a measurement lies between the price / factor and the price x factor";
  table.columns = {"machine", "stack", "rows"};
  for (const auto& [name, kind] : sim::kPriceKinds)
    if (kind != sim::PriceKind::hardware) table.columns.emplace_back(name);
  for (const auto& [machine, stack, intervals] : learned) {
    std::vector<Cell> row{machine, stack, std::to_string(intervals.rows)};
    Json entry{{"machine", machine}, {"stack", stack}, {"rows", intervals.rows}};
    for (const auto& [word, kind] : sim::kPriceKinds) {
      const double factor = intervals.factors.at(kind);
      if (kind != sim::PriceKind::hardware) row.emplace_back(number(factor), factor);
      entry[std::string(word)] = factor;
    }
    table.rows.push_back(std::move(row));
    report.json["intervals"].push_back(std::move(entry));
  }
  report.tables.push_back(std::move(table));
}

}  // namespace dculab::present
